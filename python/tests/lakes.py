"""Creates lakes with the layout of `whyslow fleet push`, from durations of operations.

Rollups and histograms are computed here from the durations, so that answers can be compared with a
direct computation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whyslow.fleet.contract import SCHEMAS

SECOND = 1_000_000_000
#: 2026-03-01T12:00:00Z
T0 = 1_772_366_400 * SECOND
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
KINDS = ("io", "block", "sched", "cpu", "locks", "mem", "dns", "requests")


def ulid(ts: int, number: int) -> str:
    """26 characters in order of time, then number."""
    value = (ts // 1_000_000) << 80 | number
    letters = ""
    for _ in range(26):
        value, rest = divmod(value, 32)
        letters = _ALPHABET[rest] + letters
    return letters


@dataclass
class Operations:
    """Operations of one kind, class, dimension and key: start times and durations in ns."""

    kind: str
    op: str
    ts: np.ndarray
    dur: np.ndarray
    dimension: str = "all"
    key: str = ""
    unfinished: int = 0


@dataclass
class Pushed:
    """A recording to push."""

    host: str
    operations: list[Operations] = field(default_factory=list)
    ts: int = T0
    dur: int = 60 * SECOND
    recording: str = ""
    cluster: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    slowest: list[dict[str, Any]] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)


def buckets_of(dur: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number and middle of the bucket of each duration."""
    dur = np.maximum(np.asarray(dur, np.int64), 0)
    shift = np.zeros(dur.shape, np.int64)
    large = dur >= 64
    # Exact: a double holds this many bits.
    shift[large] = np.frexp(dur[large].astype(np.float64))[1] - 1 - 5
    bucket = np.where(large, shift * 32 + (dur >> shift), dur)
    low = np.where(large, (32 + bucket % 32) << shift, dur)
    middle = np.where(large, low + ((np.int64(1) << shift) - 1) // 2, dur)
    return bucket, middle


def _rollup_rows(one: Operations) -> tuple[dict[str, Any], dict[str, Any]]:
    second = one.ts // SECOND * SECOND
    seconds, place = np.unique(second, return_inverse=True)
    count = np.bincount(place, minlength=len(seconds))
    total = np.zeros(len(seconds), np.int64)
    least = np.full(len(seconds), np.iinfo(np.int64).max)
    most = np.zeros(len(seconds), np.int64)
    np.add.at(total, place, one.dur)
    np.minimum.at(least, place, one.dur)
    np.maximum.at(most, place, one.dur)
    extra = np.zeros(len(seconds), np.int64)
    if one.unfinished and len(seconds):
        extra[-1] = one.unfinished
    rollup = {
        "ts": seconds,
        "count": count + extra,
        "finished": count,
        "dur_total_ns": total,
        "dur_min_ns": least,
        "dur_max_ns": most,
    }
    bucket, middle = buckets_of(one.dur)
    # Exact values if there are few of them.
    value = one.dur if len(one.dur) <= 64 else middle
    order = np.lexsort((value, bucket, second))
    sorted_rows = np.stack([second, bucket, value])[:, order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.any(np.diff(sorted_rows, axis=1), axis=0)
    first = np.flatnonzero(is_new)
    histogram = {
        "ts": second[order][first],
        "bucket": bucket[order][first],
        "value_ns": pa.array(value[order][first], mask=np.full(len(first), len(one.dur) > 64)),
        "count": np.diff(np.append(first, len(order))),
    }
    return rollup, histogram


def tables_of(pushed: Pushed) -> dict[str, pa.Table]:
    """The six tables of a recording."""
    rec, host = pushed.recording, pushed.host
    parts: dict[str, list[pa.Table]] = {"rollup": [], "histogram": []}
    for one in pushed.operations:
        for name, columns in zip(parts, _rollup_rows(one), strict=True):
            rows = len(columns["ts"])
            same = {"kind": one.kind, "op": one.op, "dimension": one.dimension, "key": one.key}
            same |= {"recording": rec, "host": host, "errors": None, "bytes": None}
            parts[name].append(
                pa.table(
                    [
                        pa.array(columns[c.name]).cast(c.type)
                        if c.name in columns
                        else pa.repeat(pa.scalar(same[c.name], c.type), rows)
                        for c in SCHEMAS[name]
                    ],
                    schema=SCHEMAS[name],
                )
            )
    seen = {one.kind for one in pushed.operations}
    about = {
        "recording": rec,
        "host": host,
        "ts": pushed.ts,
        "dur": pushed.dur,
        "ts_end": pushed.ts + pushed.dur,
        "source": "recorder",
        "rows": 0,
        "losses": 0,
        "lost_events": 0,
        "missing": ",".join(kind for kind in KINDS if kind not in seen),
        "raw": False,
        "digest": f"digest of {rec}",
        "origin": f"{host}:/var/lib/{rec}.wsl",
        "written_by": "whyslow 0.1.0",
        "kernel": pushed.labels.get("kernel"),
        **pushed.facts,
    }
    labels = [{"name": name, "value": value} for name, value in pushed.labels.items()]
    listed = {"recording": [about], "label": labels}
    listed |= {"finding": pushed.findings, "slowest": pushed.slowest}
    made = {
        name: pa.Table.from_pylist(
            [{"recording": rec, "host": host, **row} for row in rows], SCHEMAS[name]
        )
        for name, rows in listed.items()
    }
    for name, tables in parts.items():
        made[name] = pa.concat_tables(tables) if tables else SCHEMAS[name].empty_table()
    return made


def day_of(ts: int) -> str:
    return f"{datetime.fromtimestamp(ts // SECOND, timezone.utc):%Y-%m-%d}"


class LakeMaker:
    """A lake in a folder."""

    def __init__(self, path: Path):
        self.path = path
        self._number = 0

    def _name(self, ts: int) -> str:
        self._number += 1
        return ulid(ts, self._number)

    def push(self, pushed: Pushed, *, commit: bool = True) -> str:
        """Writes the objects of a recording; returns its id."""
        pushed.recording = pushed.recording or self._name(pushed.ts)
        self.push_tables(pushed, tables_of(pushed), commit=commit)
        return pushed.recording

    def push_tables(
        self, pushed: Pushed, tables: Mapping[str, pa.Table], *, commit: bool = True
    ) -> None:
        name = f"{pushed.host}.{pushed.recording}"
        about = {
            "version": 1,
            "recording": pushed.recording,
            "host": pushed.host,
            "cluster": pushed.cluster,
            "begin_ns": pushed.ts,
            "end_ns": pushed.ts + pushed.dur,
        }
        where = f"dt={day_of(pushed.ts)}/cluster={pushed.cluster}/{name}"
        self._write(where, about, tables, commit)

    def _write(
        self, where: str, about: dict[str, Any], tables: Mapping[str, pa.Table], commit: bool
    ) -> None:
        listed = {}
        for table, rows in tables.items():
            file = self.path / "v1" / table / f"{where}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            # Row groups of the same size as the program's.
            pq.write_table(rows, file, compression="zstd", row_group_size=128 * 1024)
            listed[table] = {
                "file": f"{table}/{where}.parquet",
                "rows": rows.num_rows,
                "bytes": file.stat().st_size,
            }
        if commit:
            file = self.path / "v1" / "_commits" / f"{where}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**about, "tables": listed}))

    def compact(
        self,
        recordings: Iterable[tuple[str, str]],
        *,
        day: str = day_of(T0),
        cluster: str = "default",
        replaces: Iterable[str] = (),
        delete: bool = False,
    ) -> str:
        """Merges recordings `(host, recording)` into one file per table; returns its name."""
        listed = sorted(recordings)
        folder = f"dt={day}/cluster={cluster}"
        tables = []
        for host, recording in listed:
            files = {
                table: self.path / "v1" / table / folder / f"{host}.{recording}.parquet"
                for table in SCHEMAS
            }
            tables.append(
                {name: pq.read_table(file, partitioning=None) for name, file in files.items()}
            )
        name = self._write_together(folder, listed, tables, list(replaces))
        if delete:
            for host, recording in listed:
                for file in self.path.glob(f"v1/*/{folder}/{host}.{recording}.*"):
                    file.unlink()
        return name

    def push_together(self, pushed: list[Pushed]) -> str:
        """Writes recordings of one day and cluster as a compaction would; returns its name."""
        for one in pushed:
            one.recording = one.recording or self._name(one.ts)
        folder = f"dt={day_of(pushed[0].ts)}/cluster={pushed[0].cluster}"
        keys = [(one.host, one.recording) for one in pushed]
        return self._write_together(folder, keys, [tables_of(one) for one in pushed], [])

    def _write_together(
        self,
        folder: str,
        keys: list[tuple[str, str]],
        tables: list[dict[str, pa.Table]],
        replaces: list[str],
    ) -> str:
        name = "@" + self._name(T0)
        merged = {}
        for table in SCHEMAS:
            rows = pa.concat_tables(one[table] for one in tables)
            order = {
                "rollup": ["kind", "dimension", "op", "key", "host", "ts"],
                "histogram": ["kind", "dimension", "op", "key", "host", "ts", "bucket"],
            }.get(table, ["host"])
            merged[table] = rows.sort_by([(column, "ascending") for column in order])
        about = {
            "version": 1,
            "recordings": [{"host": host, "recording": rec} for host, rec in keys],
            "replaces": replaces,
        }
        self._write(f"{folder}/{name}", about, merged, commit=True)
        return name
