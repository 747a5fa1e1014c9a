"""The schemas of a lake's tables, as pushes write them and every engine reads them.

Types are defined here, not taken from files: an empty selection still has every column, and a file
of another version is detected instead of changing the result.
"""

from __future__ import annotations

import pyarrow as pa

#: Version folder of the layout, directly below the lake.
LAYOUT = "v1"
#: Folder of the commit objects, next to the tables.
COMMITS = "_commits"

_TEXT, _WHOLE, _SMALL = pa.string(), pa.int64(), pa.int32()
_REAL, _FLAG = pa.float64(), pa.bool_()

# Name, type, nullable.
_COLUMNS: dict[str, list[tuple[str, pa.DataType, bool]]] = {
    "recording": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("ts", _WHOLE, False),
        ("dur", _WHOLE, False),
        ("ts_end", _WHOLE, False),
        ("kernel", _TEXT, True),
        ("machine", _TEXT, True),
        ("cpus", _SMALL, True),
        ("zone", _TEXT, True),
        ("source", _TEXT, False),
        ("rows", _WHOLE, False),
        ("losses", _WHOLE, False),
        ("lost_events", _WHOLE, False),
        ("missing", _TEXT, False),
        ("redacted", _TEXT, True),
        ("raw", _FLAG, False),
        ("digest", _TEXT, False),
        ("origin", _TEXT, True),
        ("written_by", _TEXT, False),
    ],
    "label": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("name", _TEXT, False),
        ("value", _TEXT, False),
    ],
    "finding": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("nr", _SMALL, False),
        ("ts", _WHOLE, False),
        ("dur", _WHOLE, False),
        ("source", _TEXT, False),
        ("target", _TEXT, False),
        ("operation", _TEXT, False),
        ("victim", _TEXT, True),
        ("mechanism", _TEXT, False),
        ("root", _TEXT, True),
        ("culprit_kind", _TEXT, True),
        ("culprit", _TEXT, True),
        ("object_kind", _TEXT, True),
        ("object", _TEXT, True),
        ("blamed_ns", _WHOLE, True),
        ("share", _REAL, True),
        ("count", _WHOLE, False),
        ("grade", _TEXT, True),
        ("confidence", _TEXT, True),
        ("missing", _TEXT, True),
        ("verdict", _TEXT, False),
        ("id", _TEXT, True),
        ("reproduce", _TEXT, True),
    ],
    "rollup": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("ts", _WHOLE, False),
        ("kind", _TEXT, False),
        ("dimension", _TEXT, False),
        ("key", _TEXT, False),
        ("op", _TEXT, False),
        ("count", _WHOLE, False),
        ("finished", _WHOLE, False),
        ("errors", _WHOLE, True),
        ("bytes", _WHOLE, True),
        ("dur_total_ns", _WHOLE, False),
        ("dur_min_ns", _WHOLE, True),
        ("dur_max_ns", _WHOLE, True),
    ],
    "histogram": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("ts", _WHOLE, False),
        ("kind", _TEXT, False),
        ("dimension", _TEXT, False),
        ("key", _TEXT, False),
        ("op", _TEXT, False),
        ("bucket", _SMALL, False),
        ("value_ns", _WHOLE, True),
        ("count", _WHOLE, False),
    ],
    "slowest": [
        ("recording", _TEXT, False),
        ("host", _TEXT, False),
        ("ts", _WHOLE, False),
        ("dur", _WHOLE, False),
        ("kind", _TEXT, False),
        ("op", _TEXT, False),
        ("process", _TEXT, True),
        ("tid", _WHOLE, True),
        ("object", _TEXT, True),
        ("id", _TEXT, False),
    ],
}

#: Schema by table; every pushed recording has all of them.
SCHEMAS = {
    table: pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in columns])
    for table, columns in _COLUMNS.items()
}

#: Columns by table and name today that pushes of commit version 1 wrote under another name, with
#: their words then and today.
RENAMED: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "finding": {"source": ("told_by", {"story": "finding", "finding": "observation"})}
}

#: Kinds of operations in `rollup`, `histogram` and `slowest`.
KINDS = ("io", "block", "sched", "cpu", "locks", "mem", "dns", "requests")
#: Dimensions of each kind, in addition to `all`.
DIMENSIONS = ("device", "endpoint", "file", "name", "outcome", "process")

#: Tables whose rows have a time, so that reads can be limited to a window.
TIMED = frozenset({"finding", "rollup", "histogram", "slowest"})
