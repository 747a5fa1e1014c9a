"""Names that changed between format versions, translated when an older recording is read.

The same list as in the program (`crates/whyslow-store/src/renamed.rs`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

# First format version with the new name; table; name in older recordings; name today.
_COLUMNS = (
    (3, "counter", "told_by", "reported_by"),
    (3, "lock_wait", "told_by", "reported_by"),
    (3, "request_thread", "got_by", "received_by"),
)
# First format version with the new word; table; column; word in older recordings; word today.
_WORDS = (
    (3, "metadata", "key", "sample_interval_told_by", "sample_interval_reported_by"),
    (3, "trace_stat", "name", "MACHINE_SLEPT", "MACHINE_SUSPENDED"),
    (3, "trace_stat", "name", "PERF_HURRIED", "PERF_SORTED_EARLY"),
    (3, "trace_stat", "name", "REQUEST_NOT_ASKED", "REQUEST_NOT_HTTP"),
    (3, "trace_stat", "name", "SNOOP_TALK", "SNOOP_STATUS_LINE"),
)


def new_columns(version: int, table: str) -> dict[str, str]:
    """Names of today by the names in files of this format version, where they differ."""
    return {old: new for since, of, old, new in _COLUMNS if version < since and of == table}


def new_words(version: int, table: str, column: str) -> dict[str, str]:
    """Words of today by the words in files of this format version, where they differ."""
    return {
        old: new
        for since, of, name, old, new in _WORDS
        if version < since and (of, name) == (table, column)
    }


def schema_of_today(version: int, table: str, schema: pa.Schema) -> pa.Schema:
    """The schema of a file of this format version, with the names of today."""
    names = new_columns(version, table)
    if not names:
        return schema
    return pa.schema(
        [field.with_name(names.get(field.name, field.name)) for field in schema],
        metadata=schema.metadata,
    )


def replace_words(column: pa.ChunkedArray, words: Mapping[str, str]) -> pa.ChunkedArray:
    """A text column with the words of today."""
    for old, new in words.items():
        column = pc.if_else(pc.equal(column, old), new, column)
    return column
