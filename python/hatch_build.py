"""Adds the views of `sql/` to the built packages.

In a clone they are next to this folder, in an unpacked source distribution they are in it.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = {"wheel": "whyslow/sql", "sdist": "sql"}


class ViewsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        found = [folder for folder in (root / "sql", root.parent / "sql") if folder.is_dir()]
        if not found:
            raise FileNotFoundError("cannot find the folder `sql` with the views: build in a clone")
        build_data["force_include"][str(found[0])] = PLACE[self.target_name]
