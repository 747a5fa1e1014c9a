"""Questions of fleets: their texts in `sql/fleet/`, and what the headers of these say.

A header tells what the question is, what it can be asked for by, and its columns, each with the
unit as its last word. Nothing of that is written a second time here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import views
from ..errors import QuestionError
from ..times import moment_ns
from .contract import DIMENSIONS, KINDS
from .units import duration_ns, time_ns

_SECOND = 1_000_000_000
# Values that there are, of parameters that take no others.
_KNOWN = {"kind": KINDS, "dimension": ("all", *DIMENSIONS)}
_GROUPS = "_of_groups"

# By the last words of a column's documentation; names are those of the program's measures.
_MEASURES = {
    "ns since the epoch": "Time",
    "ns": "Duration",
    "bytes": "Bytes",
    "count": "Count",
    "ratio": "Ratio",
    "number": "Number",
    "per second": "Rate",
    "bytes per second": "ByteRate",
    "text": "Text",
    "flag": "Text",
    "path": "Path",
    "id": "Id",
}

# Column of the view `asked` and its type, by the name of a parameter.
_COLUMNS: dict[str, tuple[str, str]] = {
    "kind": ("kind", "text"),
    "op": ("op", "text"),
    "dimension": ("dimension", "text"),
    "key": ("key", "text"),
    "label": ("label", "text"),
    "value": ("value", "text"),
    "by": ("by", "text"),
    "within": ("within", "text"),
    "at": ("at_ns", "time"),
    "bin": ("bin_ns", "duration"),
    "least": ("least", "real"),
    "all": ("all_rows", "flag"),
    "limit": ("row_limit", "whole"),
    "measure": ("measure", "text"),
}
#: The view `asked`: name and kind of each column. The window is in whole seconds, and as it was
#: asked for.
ASKED = [
    ("begin_ns", "whole"),
    ("end_ns", "whole"),
    ("exact_begin_ns", "whole"),
    ("exact_end_ns", "whole"),
    *_COLUMNS.values(),
]


@dataclass(frozen=True)
class Parameter:
    """What a question can be asked for by.

    Attributes:
        kind: text, whole, real, flag, time or duration.
        default: as it is written; None if there is none.
    """

    name: str
    kind: str
    default: str | None
    about: str


@dataclass(frozen=True)
class Column:
    """A column of an answer, with the name of its measure (`Duration`, `Count`, …)."""

    name: str
    measure: str
    about: str


@dataclass(frozen=True)
class Question:
    name: str
    title: str
    about: str
    text: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]

    def described(self) -> dict[str, Any]:
        """For `--describe`."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "parameters": [
                {"name": one.name, "type": one.kind, "default": one.default, "about": one.about}
                for one in self.parameters
            ],
            "columns": [
                {"name": one.name, "measure": one.measure, "about": one.about}
                for one in self.columns
            ],
        }


@cache
def questions() -> dict[str, Question]:
    """All of them by name, without the variants for groups of hosts."""
    texts = views.fleet()
    return {name: parse(name, text) for name, text in texts.items() if not name.endswith(_GROUPS)}


def question(name: str, by: str | None = None) -> Question:
    """A question by name; by a label, the variant that compares groups of hosts.

    Raises:
        QuestionError: there is none of that name.
    """
    known = questions()
    if name not in known:
        raise QuestionError(
            f"there is no question `{name}` of a fleet",
            hint=f"ask one of {', '.join(known)}, or SQL of your own",
        )
    found = known[name]
    text = views.fleet().get(f"{name}{_GROUPS}")
    if text is None or by is None or by == "host" or by in DIMENSIONS:
        return found
    variant = parse(name, text)
    return Question(name, variant.title, variant.about, text, found.parameters, variant.columns)


def parse(name: str, text: str) -> Question:
    """What the header of a text says.

    Raises:
        ValueError: it says it in no form that is known.
    """
    head, *paragraphs = re.split(r"\n\n+", views.header(text).strip())
    title = head.split(": ", 1)[1].replace("\n", " ").rstrip(".")
    about, parameters, columns = [], [], []
    for paragraph in paragraphs:
        if paragraph.startswith("Asked for by:"):
            parameters = [_parameter(item) for item in _items(paragraph.split("\n")[1:], 2)]
        elif paragraph is paragraphs[-1]:
            columns = [
                column for item in _items(paragraph.split("\n"), 0) for column in _column(item)
            ]
        else:
            about.append(" ".join(paragraph.split()))
    return Question(name, title, "\n\n".join(about), text, tuple(parameters), tuple(columns))


def asked(
    found: Question,
    parameters: Mapping[str, Any],
    window: tuple[int | None, int | None],
    exact: tuple[int | None, int | None] = (None, None),
) -> dict[str, Any]:
    """The row of the view `asked`.

    Args:
        window: begin and end, in whole seconds.
        exact: as they were asked for.

    Raises:
        QuestionError: a parameter that the question does not have, or a value that is none.
    """
    row: dict[str, Any] = dict.fromkeys(name for name, _ in ASKED)
    row["begin_ns"], row["end_ns"] = window
    row["exact_begin_ns"], row["exact_end_ns"] = exact
    row["dimension"] = "all"
    row["all_rows"] = False
    known = {parameter.name: parameter for parameter in found.parameters}
    for name in parameters:
        if name not in known:
            raise QuestionError(
                f"`{found.name}` is not asked for by `{name}`",
                hint=f"it is by {', '.join(known) or 'nothing'}",
            )
    for name, parameter in known.items():
        value = parameters.get(name)
        if value is None:
            value = parameter.default
        row[_COLUMNS[name][0]] = None if value is None else _value(name, parameter.kind, value)
    by = row["by"]
    if by is not None and "dimension" not in known:
        row["dimension"] = by if by in DIMENSIONS else "all"
        row["label"] = None if by == "host" or by in DIMENSIONS else by
    return row


def steps_of(text: str) -> list[str]:
    """Steps that a text reads, those that others read first."""
    texts = views.fleet("steps")
    order: list[str] = []

    def add(name: str) -> None:
        for other in texts:
            if other != name and other in words(texts[name]):
                add(other)
        if name not in order:
            order.append(name)

    for name in texts:
        if name in words(text):
            add(name)
    return order


def tables_of(text: str) -> set[str]:
    """Words of a text, and of the steps that it reads: among them the tables it needs."""
    texts = [text, *(views.fleet("steps")[step] for step in steps_of(text))]
    return {word for one in texts for word in words(one)}


def words(text: str) -> frozenset[str]:
    """Words of SQL in lower case, without those of comments that fill a line."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return frozenset(re.findall(r"[a-z_][a-z0-9_]*", code.lower()))


def _items(lines: list[str], indent: int) -> list[str]:
    """Lines that begin at an indentation, each with those that go on from it."""
    items: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) > indent and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line.strip())
    return items


def _parameter(item: str) -> Parameter:
    found = re.fullmatch(r"([a-z]+)(?: = (\S+))?\s+(.+)", item)
    if found is None or found[1] not in _COLUMNS:
        raise ValueError(f"`{item}` is no parameter")
    return Parameter(found[1], _COLUMNS[found[1]][1], found[2], found[3])


def _column(item: str) -> list[Column]:
    found = re.fullmatch(r"([a-z0-9_]+(?:, [a-z0-9_]+)*)\s\s+(.+), ([^,]+)", item)
    if found is None or found[3] not in _MEASURES:
        raise ValueError(f"`{item}` is no column with a unit")
    return [Column(name, _MEASURES[found[3]], found[2]) for name in found[1].split(", ")]


def _text(name: str, value: str) -> str:
    known = _KNOWN.get(name, (value,))
    if value not in known:
        raise QuestionError(f"there is no {name} `{value}`", hint=f"there are {', '.join(known)}")
    return value


def _real(name: str, value: float) -> float:
    # A ratio that matters, either way.
    if not (value > 1 and math.isfinite(value)):
        raise QuestionError(f"`{name}` is a ratio above 1, as 1.1, not {value:g}")
    return value


def _value(name: str, kind: str, value: Any) -> Any:
    try:
        if kind == "text":
            return _text(name, str(value))
        if kind == "flag":
            if isinstance(value, bool):
                return value
            return {"true": True, "false": False}[str(value)]
        if kind == "real":
            return _real(name, float(value))
        if kind == "time":
            return time_ns(value) if isinstance(value, str) else moment_ns(value)
        number = duration_ns(value) if kind == "duration" else int(value)
    except (KeyError, TypeError, ValueError):
        wanted = {
            "flag": "true or false",
            "real": "a number",
            "time": "a time: 2026-03-01T12:00:00Z, or ns since the epoch",
            "duration": "a length of time: 500ms, 10s, 1m, or ns",
        }.get(kind, "a whole number")
        raise QuestionError(f"`{name}` of `{value}` is not {wanted}") from None
    if kind == "duration" and (number < _SECOND or number % _SECOND):
        raise QuestionError(
            f"`{name}` of `{value}` is not a second at least, and whole seconds",
            hint="the lake knows of each second what was in it, and not when",
        )
    if number < 1:
        raise QuestionError(f"`{name}` is 1 at least, not {number}")
    return number
