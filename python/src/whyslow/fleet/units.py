"""Times and durations in the syntax of parameters."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from ..times import moment_ns

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h)?")


def duration_ns(value: int | str) -> int:
    """Parses `500ms`, `10s`, `2m` to ns; integers are ns.

    Raises:
        ValueError: invalid text.
    """
    if isinstance(value, int):
        return value
    found = _LENGTH.fullmatch(value.strip())
    if found is None:
        raise ValueError(value)
    return round(float(found[1]) * _UNITS[found[2] or "ns"])


def time_ns(value: str) -> int:
    """Parses `2026-03-01T12:00:00Z` to ns since the epoch; integers are ns already.

    Raises:
        ValueError: invalid text.
    """
    if re.fullmatch(r"-?\d+", value.strip()):
        return int(value)
    parsed = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    return moment_ns(parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc))


def duration_text(ns: float) -> str:
    """Display text: `1.2 ms`."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
