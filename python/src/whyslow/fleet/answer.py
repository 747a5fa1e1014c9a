"""An answer about a fleet: one table, and what a reader must know of it."""

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

# The keys of the program's machine forms.
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
    """What a fleet was asked, and says.

    Attributes:
        question: its name; `sql` for a statement of the user's.
        title: in words.
        table: rows, in the order of the answer; times are ns since the epoch, lengths ns.
        caveats: what a reader must know to read the table rightly.
        facts: recordings and hosts asked, engine, seconds; files, requests and bytes read since
            the lake was opened (None of Spark, which does not tell).
        measures: by column, the name of its measure (`Duration`, `Count`, …).
    """

    question: str
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
        """The rows as a pandas frame."""
        return to_pandas(self.table)

    def polars(self) -> pl.DataFrame:
        """The rows as a Polars frame."""
        return to_polars(self.table)

    def arrow(self) -> pa.Table:
        """The table with all else as metadata of its schema, under the key `whyslow`."""
        about = {
            "question": self.question,
            "title": self.title,
            "caveats": list(self.caveats),
            "facts": dict(self.facts),
            "columns": dict(self.measures),
        }
        return self.table.replace_schema_metadata(
            {"whyslow": json.dumps(about, ensure_ascii=False)}
        )

    def __repr__(self) -> str:
        lines = [f"{self.question}: {self.table.num_rows} rows, {', '.join(self.measures)}"]
        lines += [f"  note: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)


def measured(table: pa.Table, measures: Mapping[str, str]) -> pa.Table:
    """The table with the measure of each column in its metadata, as answers of one recording."""
    fields = [
        column.with_metadata({"measure": _KEYS[measures[column.name]]}) for column in table.schema
    ]
    return table.cast(pa.schema(fields))


def guessed(table: pa.Table) -> dict[str, str]:
    """Measures of columns that nobody documented, by their names' endings and their types."""
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
