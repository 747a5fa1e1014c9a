"""Queries on DuckDB, within this process.

The tables are in memory as Arrow, so DuckDB needs no files: its file systems are disabled, no
extensions are loaded, and the settings are locked, as for one recording (`session.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from .. import views
from ..errors import QueryError
from ..session import LIMITS, LOCKS, set_all
from .queries import PARAMETER_COLUMNS, steps_of

# Read once, or filtered immediately: not worth materializing.
_VIEWS = frozenset({"operation", "length"})
_TYPES = {
    "text": pa.string(),
    "whole": pa.int64(),
    "time": pa.int64(),
    "duration": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
}


class DuckEngine:
    """A session on selected tables of a lake."""

    name = "duckdb"

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        parameters: Mapping[str, Any],
        memory: str,
        threads: int | None,
        on_step: Callable[[str], None] | None = None,
    ):
        # A progress bar would go to standard output, like the answer.
        limits = {**LIMITS, "memory_limit": memory, "enable_progress_bar": "false"}
        if threads is not None:
            limits["threads"] = str(threads)
        self._on_step = on_step
        self._made: set[str] = set()
        self._connection = duckdb.connect(":memory:")
        try:
            set_all(self._connection, limits)
        except duckdb.Error as error:
            self._connection.close()
            raise QueryError(
                f"DuckDB rejected memory `{memory}` or threads `{threads}`",
                causes=[str(error)],
                hint="use a memory size such as 4GiB, and a number of threads",
            ) from error
        set_all(self._connection, LOCKS)
        self._tables = dict(tables)
        for name, table in self._tables.items():
            self._connection.register(name, table)
        fields = [pa.field(name, _TYPES[kind]) for name, kind in PARAMETER_COLUMNS]
        self._tables["parameters"] = pa.Table.from_pylist([dict(parameters)], pa.schema(fields))
        self._connection.register("parameters", self._tables["parameters"])

    def prepare(self, text: str) -> None:
        """Creates the steps that a statement reads."""
        for step in steps_of(text):
            if step in self._made:
                continue
            if self._on_step is not None:
                self._on_step(step)
            form = "VIEW" if step in _VIEWS else "TABLE"
            self._run(f"CREATE {form} {step} AS {views.fleet('steps')[step]}")
            self._made.add(step)

    def sql(self, text: str) -> pa.Table:
        """The rows of a statement.

        Raises:
            QueryError: DuckDB rejected it, or it exceeds the memory limit.
        """
        try:
            statements = len(self._connection.extract_statements(text))
        except duckdb.Error as error:
            raise QueryError(f"DuckDB rejected the statement: {_first_line(error)}") from error
        if statements > 1:
            # Only the rows of the last one would be returned.
            raise QueryError(f"expected one statement, got {statements}", hint="run one at a time")
        self.prepare(text)
        return self._run(text)

    def close(self) -> None:
        self._connection.close()

    def _run(self, text: str) -> pa.Table:
        try:
            found = self._connection.sql(text)
            if found is None:
                return pa.table({})
            return plain(found.to_arrow_table())
        except duckdb.OutOfMemoryException as error:
            raise QueryError(
                "the query exceeds its memory limit",
                causes=[_first_line(error)],
                hint="narrow the query (-w, --hosts, --kind), raise --memory, or use Spark "
                "(--engine spark://…)",
            ) from error
        except duckdb.Error as error:
            raise QueryError(f"DuckDB rejected the statement: {_first_line(error)}") from error


def plain(table: pa.Table) -> pa.Table:
    """Converts to portable types: 64-bit integers, no dictionaries.

    Raises:
        QueryError: duplicate column names, or integers beyond 64 bits.
    """
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise QueryError(f"duplicate column name `{twice[0]}`", hint="name each column: … AS NAME")
    fields = []
    columns = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind):
            kind = pa.string()
        if pa.types.is_decimal(kind):
            kind = pa.int64() if kind.scale == 0 else pa.float64()
        if pa.types.is_integer(kind):
            kind = pa.int64()
        fields.append(pa.field(field.name, kind))
        try:
            columns.append(table[field.name].cast(kind))
        except pa.ArrowInvalid as error:
            raise QueryError(
                f"column `{field.name}` has integers beyond signed 64 bits",
                causes=[str(error)],
                hint=f"convert them to text: CAST({field.name} AS STRING)",
            ) from error
    return pa.table(columns, pa.schema(fields))


def _first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error).split("\n\n")[0])
