"""An answer about a fleet: one table, with caveats and facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Measures as named in the program's JSON output.
_KEYS = {
    "Time": "time_ns",
    "Duration": "duration_ns",
    "Bytes": "bytes",
    "Count": "count",
    "Ratio": "ratio",
    "Number": "number",
    "Rate": "per_second",
    "ByteRate": "bytes_per_second",
    "Path": "path",
    "Id": "id",
    "Text": "text",
}


@dataclass(frozen=True)
class FleetAnswer:
    """The answer to a fleet query.

    Attributes:
        query: name of the query; `sql` for custom SQL.
        title: title of the query.
        table: rows in the order of the answer; times are ns since the epoch, durations ns.
        caveats: limitations needed to interpret the table.
        facts: queried recordings and hosts, engine, seconds; files, requests and bytes read since
            the lake was opened (None on Spark, which does not report them).
        measures: measure of each column (`Duration`, `Count`, …).
    """

    query: str
    title: str
    table: pa.Table
    caveats: tuple[str, ...]
    facts: Mapping[str, Any]
    measures: Mapping[str, str] = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame."""
        return to_pandas(self.table)

    def polars(self) -> pl.DataFrame:
        """The rows as a Polars data frame."""
        return to_polars(self.table)

    def arrow(self) -> pa.Table:
        """The table with the rest of the answer as schema metadata, under the key `whyslow`."""
        about = {
            "query": self.query,
            "title": self.title,
            "caveats": list(self.caveats),
            "facts": dict(self.facts),
            "columns": dict(self.measures),
        }
        return self.table.replace_schema_metadata(
            {"whyslow": json.dumps(about, ensure_ascii=False)}
        )

    def __repr__(self) -> str:
        lines = [f"{self.query}: {self.table.num_rows} rows, {', '.join(self.measures)}"]
        lines += [f"  note: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)


def measured(table: pa.Table, measures: Mapping[str, str]) -> pa.Table:
    """The table with the measure of each column in its metadata, as for one recording."""
    fields = [
        column.with_metadata({"measure": _KEYS[measures[column.name]]}) for column in table.schema
    ]
    return table.cast(pa.schema(fields))


def guessed(table: pa.Table) -> dict[str, str]:
    """Measures of undocumented columns, from name suffixes and types."""
    return {column.name: _guess(column) for column in table.schema}


def _guess(column: pa.Field) -> str:
    name = column.name.lower()
    if pa.types.is_floating(column.type):
        return "Number"
    if not pa.types.is_integer(column.type):
        return "Text"
    if name in ("ts", "ts_end", "begin_ns", "end_ns") or name.endswith("_ts"):
        return "Time"
    if name == "dur" or name.endswith("_ns"):
        return "Duration"
    return "Bytes" if name == "bytes" or name.endswith("_bytes") else "Count"
