"""The texts of `sql/`, which the program uses too.

They are part of the installed package. In a clone they lie at its root.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "sql", _PACKAGE.parents[2] / "sql")


@cache
def setup(name: str) -> str:
    """A statement that makes a session, without its comments: a template with `{…}`."""
    lines = (_folder() / "setup" / f"{name}.sql").read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


@cache
def views() -> dict[str, str]:
    """Views by name, as their statements with the header that documents their columns."""
    files = sorted((_folder() / "views").glob("*.sql"))
    return {file.stem: file.read_text("utf-8") for file in files}


@cache
def fleet(folder: str = "") -> dict[str, str]:
    """Questions of fleets by name, or what they are made of (`steps`, `caveats`)."""
    files = sorted((_folder() / "fleet" / folder).glob("*.sql"))
    return {file.stem: file.read_text("utf-8") for file in files}


def header(text: str) -> str:
    """What the comment at the top of a view says."""
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
    raise FileNotFoundError(f"the package has lost its views: {_PLACES[0]}")
