"""Fleet queries: the SQL files in `sql/fleet/` and their headers.

A header has the title of the query, its parameters, and its columns, each with the unit as its last
word. Nothing of that is repeated here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import views
from ..errors import QueryError
from ..times import moment_ns
from .contract import DIMENSIONS, KINDS
from .units import duration_ns, time_ns

_SECOND = 1_000_000_000
# Valid values of parameters with a fixed set of values.
_KNOWN = {"kind": KINDS, "dimension": ("all", *DIMENSIONS)}
_GROUPS = "_of_groups"

# Measures, as named by the program, by the last words of a column's documentation.
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

# Column of the view `parameters` and its type, by parameter name.
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
#: The view `parameters`: name and kind of each column. The window is in whole seconds, and exact.
PARAMETER_COLUMNS = [
    ("begin_ns", "whole"),
    ("end_ns", "whole"),
    ("exact_begin_ns", "whole"),
    ("exact_end_ns", "whole"),
    *_COLUMNS.values(),
]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query.

    Attributes:
        kind: text, whole, real, flag, time or duration.
        default: the default as text; None without one.
    """

    name: str
    kind: str
    default: str | None
    about: str


@dataclass(frozen=True)
class Column:
    """A column of an answer, with its measure (`Duration`, `Count`, …)."""

    name: str
    measure: str
    about: str


@dataclass(frozen=True)
class Query:
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
def queries() -> dict[str, Query]:
    """All queries by name, without the variants for groups of hosts."""
    texts = views.fleet()
    return {name: parse(name, text) for name, text in texts.items() if not name.endswith(_GROUPS)}


def query(name: str, by: str | None = None) -> Query:
    """A query by name; with a label, the variant that compares groups of hosts.

    Raises:
        QueryError: no such query.
    """
    known = queries()
    if name not in known:
        raise QueryError(
            f"unknown fleet query `{name}`",
            hint=f"use one of {', '.join(known)}, or custom SQL",
        )
    found = known[name]
    text = views.fleet().get(f"{name}{_GROUPS}")
    if text is None or by is None or by == "host" or by in DIMENSIONS:
        return found
    variant = parse(name, text)
    return Query(name, variant.title, variant.about, text, found.parameters, variant.columns)


def parse(name: str, text: str) -> Query:
    """Parses the header of a SQL file.

    Raises:
        ValueError: the header is malformed.
    """
    head, *paragraphs = re.split(r"\n\n+", views.header(text).strip())
    title = head.split(": ", 1)[1].replace("\n", " ").rstrip(".")
    about, parameters, columns = [], [], []
    for paragraph in paragraphs:
        if paragraph.startswith("Parameters:"):
            parameters = [_parameter(item) for item in _items(paragraph.split("\n")[1:], 2)]
        elif paragraph is paragraphs[-1]:
            columns = [
                column for item in _items(paragraph.split("\n"), 0) for column in _column(item)
            ]
        else:
            about.append(" ".join(paragraph.split()))
    return Query(name, title, "\n\n".join(about), text, tuple(parameters), tuple(columns))


def parameter_row(
    found: Query,
    parameters: Mapping[str, Any],
    window: tuple[int | None, int | None],
    exact: tuple[int | None, int | None] = (None, None),
) -> dict[str, Any]:
    """The row of the view `parameters`.

    Args:
        window: start and end, in whole seconds.
        exact: start and end as requested.

    Raises:
        QueryError: an unknown parameter or an invalid value.
    """
    row: dict[str, Any] = dict.fromkeys(name for name, _ in PARAMETER_COLUMNS)
    row["begin_ns"], row["end_ns"] = window
    row["exact_begin_ns"], row["exact_end_ns"] = exact
    row["dimension"] = "all"
    row["all_rows"] = False
    known = {parameter.name: parameter for parameter in found.parameters}
    for name in parameters:
        if name not in known:
            raise QueryError(
                f"`{found.name}` has no parameter `{name}`",
                hint=f"parameters: {', '.join(known) or 'none'}",
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
    """Steps that a statement reads, in dependency order."""
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
    """Words of a statement and of the steps that it reads; these include the tables it needs."""
    texts = [text, *(views.fleet("steps")[step] for step in steps_of(text))]
    return {word for one in texts for word in words(one)}


def words(text: str) -> frozenset[str]:
    """Words of SQL in lower case, without full-line comments."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return frozenset(re.findall(r"[a-z_][a-z0-9_]*", code.lower()))


def _items(lines: list[str], indent: int) -> list[str]:
    """Lines at an indentation, each joined with its continuation lines."""
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
        raise ValueError(f"`{item}` is not a parameter")
    return Parameter(found[1], _COLUMNS[found[1]][1], found[2], found[3])


def _column(item: str) -> list[Column]:
    found = re.fullmatch(r"([a-z0-9_]+(?:, [a-z0-9_]+)*)\s\s+(.+), ([^,]+)", item)
    if found is None or found[3] not in _MEASURES:
        raise ValueError(f"`{item}` is not a column with a unit")
    return [Column(name, _MEASURES[found[3]], found[2]) for name in found[1].split(", ")]


def _text(name: str, value: str) -> str:
    known = _KNOWN.get(name, (value,))
    if value not in known:
        raise QueryError(f"unknown {name} `{value}`", hint=f"valid values: {', '.join(known)}")
    return value


def _real(name: str, value: float) -> float:
    # Applies in both directions.
    if not (value > 1 and math.isfinite(value)):
        raise QueryError(f"`{name}` must be a ratio above 1, such as 1.1, not {value:g}")
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
            "time": "a time (2026-03-01T12:00:00Z, or ns since the epoch)",
            "duration": "a duration (500ms, 10s, 1m, or ns)",
        }.get(kind, "an integer")
        raise QueryError(f"`{name}` must be {wanted}, not `{value}`") from None
    if kind == "duration" and (number < _SECOND or number % _SECOND):
        raise QueryError(
            f"`{name}` must be a whole number of seconds, not `{value}`",
            hint="use whole seconds, the resolution of the lake",
        )
    if number < 1:
        raise QueryError(f"`{name}` must be at least 1, not {number}")
    return number
