"""Puts the views of `sql/` into what is built, wherever it is built from.

In a clone they lie beside this folder. In an unpacked source distribution they lie in it.
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
            raise FileNotFoundError("the folder `sql` with the views is missing: build in a clone")
        build_data["force_include"][str(found[0])] = PLACE[self.target_name]
