"""What an answer about a fleet does not tell.

Made from the table of recordings, which is small and always read: what was lost, what was never
recorded, what was hidden. What a question could not judge its own text in `caveats/` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_EXAMPLES = 3


def of_recordings(table: pa.Table, kind: str | None, reads_rows: bool) -> list[str]:
    """Of the recordings that were asked.

    Args:
        kind: that the question is about; None is all.
        reads_rows: whether operations are counted, so that what was not recorded matters.
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
    told = f"{total} that are known" if total else "how many is not known"
    return [
        f"{len(losers)} of {len(hosts)} hosts lost events ({told}): "
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
    said = []
    for name in sorted(lacking):
        # Another recording of the host may have what one lacks.
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
            said.append(
                f"{len(without)} of {len(hosts)} hosts did not record `{name}`: "
                f"nothing is said of theirs ({names(sorted(without))})"
            )
        elif kind is not None:
            said.append(f"no host recorded `{name}`: nothing can be said of it")
    return said


def _redacted(recordings: list[dict[str, Any]]) -> list[str]:
    hidden = [row for row in recordings if row["redacted"]]
    if not hidden:
        return []
    return [
        f"texts were hidden in {len(hidden)} of {len(recordings)} recordings before they were "
        "pushed: equal names there need not be equal things"
    ]


def of_selection(selection: Any, window: tuple[int | None, int | None]) -> list[str]:
    """Of how recordings were chosen."""
    said = []
    clusters: dict[str, set[str]] = {}
    for entry in selection.entries:
        clusters.setdefault(entry.host, set()).add(entry.cluster)
    several = sorted(host for host, found in clusters.items() if len(found) > 1)
    if several:
        said.append(
            f"{len(several)} host names are in several clusters, and each counts as one host: "
            f"`cluster` (--cluster) tells them apart ({names(several)})"
        )
    if selection.doubled:
        said.append(
            f"{selection.doubled} recordings were pushed to more than one place of the lake; "
            "each counts once"
        )
    if selection.strange:
        said.append(f"{selection.strange} objects among the commits are none, and were passed over")
    return said


def of_gaps(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Of what a question's own text tells: `gap`, `kind`, `op`, `hosts`, `example`."""
    return [
        row["gap"]
        .replace("{hosts}", str(row["hosts"]))
        .replace("{what}", " ".join(part for part in (row["kind"], row["op"]) if part))
        .replace("{example}", str(row["example"]))
        for row in rows
    ]


def of_classes(kind: str | None, op: str, found: list[str]) -> list[str]:
    """Of an answer without rows, where the class that was asked for may be but misspelt.

    Args:
        found: classes of the kind that were looked at.
    """
    if op in found or not found:
        return []
    what = f" of `{kind}`" if kind is not None else ""
    listed = ", ".join(f"`{one}`" if one else "none (empty)" for one in found)
    return [f"no operation{what} that was looked at is of class `{op}`; classes there: {listed}"]


def names(listed: list[str]) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(listed[:_EXAMPLES])
    more = len(listed) - _EXAMPLES
    return f"{shown} and {more} more" if more > 0 else shown
