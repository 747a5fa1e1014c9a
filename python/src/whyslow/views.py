"""The SQL files of `sql/`, which the program also uses.

They are part of the installed package. In a clone they are at its root.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "sql", _PACKAGE.parents[2] / "sql")


@cache
def setup(name: str) -> str:
    """A statement for creating a session, without its comments: a template with `{…}`."""
    lines = (_folder() / "setup" / f"{name}.sql").read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


@cache
def views() -> dict[str, str]:
    """Views by name, as statements with the header that documents their columns."""
    files = sorted((_folder() / "views").glob("*.sql"))
    return {file.stem: file.read_text("utf-8") for file in files}


@cache
def fleet(folder: str = "") -> dict[str, str]:
    """Fleet queries by name, or their `steps` or `caveats`."""
    files = sorted((_folder() / "fleet" / folder).glob("*.sql"))
    return {file.stem: file.read_text("utf-8") for file in files}


def header(text: str) -> str:
    """The comment at the top of a view."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line[2:].removeprefix(" "))
    return "\n".join(lines)


def _folder() -> Path:
    for place in _PLACES:
        if (place / "views").is_dir():
            return place
    raise FileNotFoundError(f"the views of the package are missing: {_PLACES[0]}")
