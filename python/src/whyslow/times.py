"""Times: ns since the Unix epoch, and their text forms.

Times in this package are integers in ns, because a float holds only 53 of their 61 bits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa

from .errors import QueryError

#: ns since the epoch, or a datetime with a time zone (pandas keeps its ns).
Moment: TypeAlias = "int | datetime"
#: Start and end, `begin <= t < end`; None means that of the recording.
Window: TypeAlias = "tuple[Moment | None, Moment | None]"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND = 1_000_000_000
_OFFSET = re.compile(r"([+-])(\d\d?):?(\d\d)?")


def moment_ns(moment: Moment) -> int:
    """ns since the epoch.

    Raises:
        QueryError: a datetime without a time zone, or not a time.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise QueryError(
                f"`{moment}` has no time zone", hint="add one: tzinfo=datetime.timezone.utc"
            )
        us = (moment - _EPOCH) // timedelta(microseconds=1)
        return int(us) * 1_000 + int(getattr(moment, "nanosecond", 0))
    try:
        return operator.index(moment)
    except TypeError:
        raise QueryError(
            f"invalid time `{moment!r}`: expected ns since the epoch as an integer, or a datetime"
        ) from None


def moment_text(moment: Moment) -> str:
    """A time in the syntax of the program, to the ns."""
    seconds, ns = divmod(moment_ns(moment), _SECOND)
    try:
        face = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise QueryError(f"`{moment}` ns since the epoch is out of range") from None
    return f"{face:%Y-%m-%dT%H:%M:%S}.{ns:09}Z"


def window_ns(window: Window) -> tuple[int | None, int | None]:
    """Start and end in ns since the epoch.

    Raises:
        QueryError: not a pair of times, or an empty window.
    """
    try:
        begin, end = window
    except (TypeError, ValueError):
        raise QueryError(f"invalid window `{window!r}`: expected (begin_ns, end_ns)") from None
    begin_ns = None if begin is None else moment_ns(begin)
    end_ns = None if end is None else moment_ns(end)
    if begin_ns is not None and end_ns is not None and end_ns <= begin_ns:
        raise QueryError("the window ends before it starts or is empty")
    return begin_ns, end_ns


def window_text(window: Window | str) -> str:
    """A window in the syntax of the program; text is passed through."""
    if isinstance(window, str):
        return window
    sides = ["" if side is None else moment_text(side) for side in window_ns(window)]
    return "..".join(sides)


def zone_name(zone: str | None) -> str:
    """Arrow name of a time zone; `UTC` for an unknown one, as in the program."""
    if zone is None:
        return "UTC"
    offset = _OFFSET.fullmatch(zone)
    if offset:
        sign, hours, minutes = offset.groups(default="00")
        name = f"{sign}{int(hours):02}:{minutes}"
        return "UTC" if name[1:] == "00:00" else name
    try:
        return ZoneInfo(zone).key
    except (KeyError, OSError, ValueError):
        return "UTC"


def is_time(field: pa.Field) -> bool:
    """Whether a column holds times: `ts`, `ts_end`, …; in answers by its measure."""
    measure = (field.metadata or {}).get(b"measure")
    if measure is not None:
        return bool(measure == b"time_ns")
    name = field.name == "ts" or field.name.startswith("ts_")
    return name and bool(pa.types.is_int64(field.type))


def with_times(
    table: pa.Table, zone: str | None = None, columns: Iterable[str] | None = None
) -> pa.Table:
    """The table with times as ns timestamps in a time zone, instead of integers.

    Args:
        zone: IANA name or offset (`+01:00`); None means UTC.
        columns: names of the columns to convert; default all with times.
    """
    wanted = set(table.column_names) if columns is None else set(columns)
    kind = pa.timestamp("ns", zone_name(zone))
    for index, field in enumerate(table.schema):
        if field.name in wanted and (columns is not None or is_time(field)):
            times: Any = table.column(index).cast(kind)
            table = table.set_column(index, field.with_type(kind), times)
    return table
