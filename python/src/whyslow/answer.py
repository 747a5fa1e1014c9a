"""An answer of the program as Arrow tables, with its caveats and facts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .errors import ProgramError, QueryError
from .frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

#: Schema version of the JSON output that this package reads; within a version keys are only added.
SCHEMA_VERSION = 2

_TEXTS = {"text", "path", "id"}
_REALS = {"ratio", "per_second", "bytes_per_second", "number"}
# Facts and cells of heat maps cannot be outliers or overlap the window.
_MARKED_FORMS = {"table", "tree", "histogram"}


@dataclass(frozen=True)
class Loss:
    """A time range in which events were lost.

    Attributes:
        kind: `events` (discarded), `packets` (missing) or `bytes` (unreadable).
        count: number of lost events, packets or bytes; None if unknown.
        cpu: CPU; None if several or unknown.
        begin_ns: start of the range, ns since the epoch.
        end_ns: end of the range; None if unknown.
    """

    kind: str
    count: int | None
    cpu: int | None
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True)
class Answer:
    """The program's answer to a query.

    Attributes:
        query: kind and verb (`io stats`).
        recording: name of the recording.
        host, zone: recorded host and its time zone; None if the sources do not contain it.
        window: the requested window, clamped to the recording; ns since the epoch.
        tables: by name, in the order of the answer. Times and durations are integers in ns, sizes
            in bytes, as the suffixes of their names indicate. Outliers have `outlier`, rows that
            extend beyond the window or the recording have `overlap` (`begin`, `end`, `both`).
        facts: by table and name: filters, measured time, percentiles.
        losses: losses in the window.
        caveats: limitations needed to interpret the tables.
        next: a suggested next command.
        state: whether such events were recorded: `recorded`, `none_happened`, `not_recorded` or
            `unknown` (the source does not state it); None if the answer is not of one kind.
        reason: why there are no events; None if there are some.
        record_with: what would record them, such as `--what +locks`.
        left_out: rows that match but are left out of the tables, such as waits for work: `what`,
            `count`, `total_ns`, `by_name`, and the `option` that includes them; None if none are.
    """

    query: str
    recording: str
    host: str | None
    zone: str | None
    window: tuple[int, int] | None
    tables: Mapping[str, pa.Table]
    facts: Mapping[str, dict[str, Any]] = field(repr=False)
    losses: tuple[Loss, ...]
    caveats: tuple[str, ...]
    next: str | None = None
    state: str | None = None
    reason: str | None = None
    record_with: str | None = None
    left_out: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, document: bytes, query: str) -> Answer:
        """Parses the output of `--format json`.

        Raises:
            QueryError: the document is not an answer.
            ProgramError: it has another schema version.
        """
        try:
            found = json.loads(document)
        except ValueError:
            raise QueryError(f"`{query}` does not return tables") from None
        if not isinstance(found, dict) or "schema_version" not in found:
            raise QueryError(f"`{query}` does not return tables")
        version = found["schema_version"]
        if version != SCHEMA_VERSION:
            raise ProgramError(
                f"the program's output has schema version {version}; this package reads "
                f"version {SCHEMA_VERSION}",
                hint="use the same version of the package and the program",
            )
        window = found["window"]
        tables: dict[str, pa.Table] = {}
        facts = {}
        for table in found["tables"]:
            name = _free_name(table["name"], tables)
            tables[name] = _arrow(table, _notes(found, table))
            facts[name] = table["facts"]
        return cls(
            query=found["query"],
            recording=found["recording"],
            host=found["host"],
            zone=found["zone"],
            window=(window["begin_ns"], window["end_ns"]) if window else None,
            tables=tables,
            facts=facts,
            losses=tuple(_loss(loss) for loss in found["losses"]),
            caveats=tuple(found["caveats"]),
            next=found.get("next"),
            state=found.get("state"),
            reason=found.get("reason"),
            record_with=found.get("record_with"),
            left_out=found.get("left_out"),
        )

    def table(self, name: str | None = None) -> pa.Table:
        """A table by name; the first one without a name.

        Raises:
            QueryError: there is no table of that name.
        """
        if name is None:
            name = next(iter(self.tables), "")
        if name not in self.tables:
            names = ", ".join(self.tables) or "none"
            raise QueryError(f"no table `{name}` in this answer; tables: {names}")
        return self.tables[name]

    def __getitem__(self, name: str) -> pa.Table:
        return self.table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def pandas(self, name: str | None = None) -> pd.DataFrame:
        """A table (the first one without a name) as a pandas data frame."""
        return to_pandas(self.table(name))

    def polars(self, name: str | None = None) -> pl.DataFrame:
        """A table (the first one without a name) as a Polars data frame."""
        return to_polars(self.table(name))

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({table.num_rows})" for name, table in self.tables.items())
        lines = [f"{self.query} of {self.recording}: {tables}"]
        lines += [f"  lost: {loss}" for loss in self.losses]
        lines += [f"  note: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)


def _loss(loss: dict[str, Any]) -> Loss:
    return Loss(
        kind=loss["kind"],
        count=loss["count"],
        cpu=loss["cpu"],
        begin_ns=loss["begin_ns"],
        end_ns=loss["end_ns"],
    )


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    # Two devices may differ only in characters that are not allowed in table names.
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}_{number}"
    return free


def _notes(answer: dict[str, Any], table: dict[str, Any]) -> dict[str, str]:
    """Metadata of a single table, the same as in `--format arrow`."""
    notes = {
        "whyslow.schema_version": str(answer["schema_version"]),
        "whyslow.query": answer["query"],
        "whyslow.table": table["name"],
        "whyslow.title": table["title"],
        "whyslow.form": table["form"],
        "whyslow.lost_ranges": str(len(answer["losses"])),
        "whyslow.caveats": "\n".join(answer["caveats"]),
    }
    if answer.get("state"):
        notes["whyslow.state"] = answer["state"]
    window = answer["window"]
    if window:
        notes["whyslow.window_begin_ns"] = str(window["begin_ns"])
        notes["whyslow.window_end_ns"] = str(window["end_ns"])
    return notes


def _arrow(table: dict[str, Any], notes: dict[str, str]) -> pa.Table:
    rows = table["rows"]
    # Of two columns with the same name a row has only one value.
    columns = {column["name"]: column for column in table["columns"]}
    fields, arrays = [], []
    for name, column in columns.items():
        array = _array(column["measure"], [row.get(name) for row in rows])
        about = {"title": column["title"], "measure": column["measure"]}
        fields.append(pa.field(name, array.type, metadata=about))
        arrays.append(array)
    if table["form"] in _MARKED_FORMS:
        for name, kind in (("outlier", pa.bool_()), ("overlap", pa.string())):
            fields.append(pa.field(name, kind))
            arrays.append(pa.array([row.get(name) for row in rows], kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=notes))


def _array(measure: str, cells: list[Any]) -> pa.Array:
    """The type follows the measure, so that it does not depend on the rows.

    A column whose cells do not fit becomes text, as in `--format arrow`.
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return pa.array(cells, pa.bool_())
    if kinds == {list}:
        texts = [None if cell is None else [_text(item) for item in cell] for cell in cells]
        return pa.array(texts, pa.list_(pa.string()))
    if measure not in _TEXTS and measure not in _REALS and kinds <= {int}:
        return pa.array(cells, pa.int64())
    if measure not in _TEXTS and kinds <= {int, float}:
        reals = [None if cell is None else float(cell) for cell in cells]
        return pa.array(reals, pa.float64())
    return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return json.dumps(cell, ensure_ascii=False, separators=(",", ":"))
