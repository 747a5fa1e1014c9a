"""Caveats of an answer about a fleet.

Lost, unrecorded and redacted data is reported from the table of recordings, which is small and
always read. Caveats of a single query come from its SQL in `caveats/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_EXAMPLES = 3


def of_recordings(table: pa.Table, kind: str | None, reads_rows: bool) -> list[str]:
    """Caveats of the queried recordings.

    Args:
        kind: kind of operation of the query; None means all.
        reads_rows: whether operations are counted, so that unrecorded kinds matter.
    """
    rows = table.select(["host", "recording", "lost_events", "losses", "missing", "redacted"])
    recordings = rows.to_pylist()
    hosts = {row["host"] for row in recordings}
    return [
        *_lost(recordings, hosts),
        *(_missing(recordings, hosts, kind) if reads_rows else []),
        *_redacted(recordings),
    ]


def _lost(recordings: list[dict[str, Any]], hosts: set[str]) -> list[str]:
    losers: dict[str, int] = {}
    for row in recordings:
        if row["losses"]:
            losers[row["host"]] = losers.get(row["host"], 0) + row["lost_events"]
    if not losers:
        return []
    most = sorted(losers, key=lambda host: (-losers[host], host))
    total = sum(losers.values())
    amount = f"at least {total}" if total else "unknown number"
    return [
        f"{len(losers)} of {len(hosts)} hosts lost events ({amount}): "
        f"their counts and times are too low ({names(most)})"
    ]


def _missing(recordings: list[dict[str, Any]], hosts: set[str], kind: str | None) -> list[str]:
    recorded: dict[str, set[str]] = {}
    lacking: dict[str, set[str]] = {}
    for row in recordings:
        missing = {name for name in row["missing"].split(",") if name}
        for name in missing:
            lacking.setdefault(name, set()).add(row["host"])
        recorded.setdefault(row["host"], set()).update(missing)
    caveats = []
    for name in sorted(lacking):
        # Another recording of the host may have the kind.
        without = (
            {
                host
                for host in lacking[name]
                if all(
                    name in row["missing"].split(",") for row in recordings if row["host"] == host
                )
            }
            if len(lacking[name]) < len(hosts) or len(recordings) > len(hosts)
            else lacking[name]
        )
        if not without or (kind is not None and name != kind):
            continue
        if len(without) < len(hosts):
            caveats.append(
                f"`{name}` unavailable on {len(without)} of {len(hosts)} hosts: not recorded "
                f"({names(sorted(without))})"
            )
        elif kind is not None:
            caveats.append(f"`{name}` unavailable: not recorded on any host")
    return caveats


def _redacted(recordings: list[dict[str, Any]]) -> list[str]:
    hidden = [row for row in recordings if row["redacted"]]
    if not hidden:
        return []
    return [
        f"{len(hidden)} of {len(recordings)} recordings were redacted before they were pushed: "
        "equal names there may refer to different objects"
    ]


def of_selection(selection: Any, window: tuple[int | None, int | None]) -> list[str]:
    """Caveats of the selection of recordings."""
    caveats = []
    clusters: dict[str, set[str]] = {}
    for entry in selection.entries:
        clusters.setdefault(entry.host, set()).add(entry.cluster)
    several = sorted(host for host, found in clusters.items() if len(found) > 1)
    if several:
        caveats.append(
            f"{len(several)} host names are in several clusters and count as one host each; "
            f"`cluster` (--cluster) separates them ({names(several)})"
        )
    if selection.doubled:
        caveats.append(
            f"{selection.doubled} recordings were pushed to more than one place in the lake; "
            "each counts once"
        )
    if selection.strange:
        caveats.append(
            f"{selection.strange} objects among the commits are invalid and were skipped"
        )
    return caveats


def of_gaps(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Caveats from a query's own SQL: `gap`, `kind`, `op`, `hosts`, `example`."""
    return [
        row["gap"]
        .replace("{hosts}", str(row["hosts"]))
        .replace("{what}", " ".join(part for part in (row["kind"], row["op"]) if part))
        .replace("{example}", str(row["example"]))
        for row in rows
    ]


def of_classes(kind: str | None, op: str, found: list[str]) -> list[str]:
    """Caveat of an empty answer whose class of operation may be misspelt.

    Args:
        found: existing classes of the kind.
    """
    if op in found or not found:
        return []
    what = f" of `{kind}`" if kind is not None else ""
    listed = ", ".join(f"`{one}`" if one else "none (empty)" for one in found)
    return [f"no operation{what} has class `{op}`; classes: {listed}"]


def names(listed: list[str]) -> str:
    """The first names, and the number of further ones."""
    shown = ", ".join(listed[:_EXAMPLES])
    more = len(listed) - _EXAMPLES
    return f"{shown} and {more} more" if more > 0 else shown
