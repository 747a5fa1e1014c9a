"""Fleets made by resampling: seconds, and the operations in them, are drawn with replacement.

The seed is a folder of a real lake or, without one, typical durations of disk requests and calls.
Hosts differ by level and by load (log-normal), as hosts of one kind do. Faults are applied on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds
from lakes import SECOND, T0, LakeMaker, Operations, Pushed, ulid

DEVICES = ("sda", "sdb", "sdc", "sdd")
RACK_HOSTS = 40


@dataclass
class Seed:
    """Durations of one kind and operation, second by second."""

    kind: str
    op: str
    dur: np.ndarray
    offsets: np.ndarray

    def draw(self, rng: np.random.Generator, seconds: int, load: float) -> tuple[np.ndarray, np.ndarray]:
        """Seconds (from 0) and durations of a host's operations."""
        sizes = np.diff(self.offsets)
        chosen = rng.integers(len(sizes), size=seconds)
        counts = rng.poisson(sizes[chosen] * load)
        second = np.repeat(np.arange(seconds), counts)
        source = np.repeat(chosen, counts)
        place = self.offsets[source] + (rng.random(len(source)) * sizes[source]).astype(np.int64)
        return second, self.dur[place]


def made_up(rng: np.random.Generator) -> list[Seed]:
    """Typical durations of disks, calls and CPUs on a machine with moderate load."""
    seeds = []
    for kind, op, rate, middle, sigma, hits in (
        ("block", "read", 60, 400_000, 0.8, 0.0),
        ("block", "write", 40, 900_000, 0.7, 0.0),
        ("io", "read", 150, 350_000, 0.9, 0.35),
        ("io", "write", 80, 30_000, 0.8, 0.0),
        ("sched", "", 200, 25_000, 1.0, 0.0),
        ("dns", "", 5, 3_000_000, 0.6, 0.3),
    ):
        counts = rng.poisson(rate * rng.lognormal(0, 0.4, 300)) + 1
        # Seconds vary, too.
        level = np.repeat(rng.lognormal(0, 0.08, 300), counts)
        dur = rng.lognormal(np.log(middle), sigma, counts.sum()) * level
        cached = rng.random(len(dur)) < hits
        dur[cached] = rng.lognormal(np.log(middle / 60), 0.4, cached.sum())
        offsets = np.concatenate([[0], np.cumsum(counts)])
        seeds.append(Seed(kind, op, dur.astype(np.int64) + 1, offsets))
    return seeds


def middles(bucket: np.ndarray) -> np.ndarray:
    """Midpoints of buckets, ns."""
    shift = np.maximum(bucket.astype(np.int64) // 32 - 1, 0)
    low = (32 + bucket.astype(np.int64) % 32) << shift
    return np.where(bucket < 64, bucket, low + ((1 << shift) - 1) // 2)


def of_lake(folder: Path) -> list[Seed]:
    """Seeds from the recordings of a real lake: kinds with at least ten seconds and 100 operations."""
    table = ds.dataset(folder / "v1" / "histogram", format="parquet").to_table(
        columns=["recording", "ts", "kind", "op", "bucket", "count"],
        filter=pc.field("dimension") == "all",
    )
    seeds = []
    groups = table.group_by(["kind", "op"]).aggregate([]).to_pylist()
    for group in sorted(groups, key=lambda group: (group["kind"], group["op"])):
        rows = table.filter((pc.field("kind") == group["kind"]) & (pc.field("op") == group["op"]))
        rows = rows.sort_by([("recording", "ascending"), ("ts", "ascending")])
        dur = np.repeat(middles(rows["bucket"].to_numpy()), rows["count"].to_numpy())
        names = rows["recording"].combine_chunks().dictionary_encode().indices.to_numpy()
        second = np.repeat(np.stack([names, rows["ts"].to_numpy()]), rows["count"].to_numpy(), axis=1)
        borders = np.flatnonzero(np.any(np.diff(second, axis=1), axis=0)) + 1
        offsets = np.concatenate([[0], borders, [len(dur)]])
        if len(offsets) > 10 and len(dur) >= 100:
            seeds.append(Seed(group["kind"], group["op"], dur, offsets))
    return seeds


@dataclass
class Faults:
    """Faults and the hosts or rack that have them."""

    tail: str = ""
    median: str = ""
    device: str = ""
    device_name: str = "sdc"
    rack: str = ""
    #: Seconds after the start at which the rack becomes slower.
    rack_from: int = 0
    rack_ratio: float = 1.5
    median_ratio: float = 2.0

    @property
    def hosts(self) -> set[str]:
        return {self.tail, self.median, self.device} - {""}


@dataclass
class Fleet:
    hosts: int = 1000
    seconds: int = 30
    #: Standard deviation of the logarithm of levels, between hosts of a kind.
    sigma: float = 0.1
    load_sigma: float = 0.4
    #: Slowdown factor of the host that is slower throughout.
    median_ratio: float = 2.0
    seeds: list[Seed] = field(default_factory=list)

    def faults(self, rng: np.random.Generator) -> Faults:
        racks = self.hosts // RACK_HOSTS
        rack = int(rng.integers(racks)) if racks > 1 else -1
        outside = [n for n in range(self.hosts) if n // RACK_HOSTS != rack]
        bad = rng.choice(outside, 3, replace=False) if len(outside) >= 8 else []
        names = [host_name(int(number)) for number in bad]
        made = Faults(*names, median_ratio=self.median_ratio)
        if rack >= 0:
            made.rack, made.rack_from = f"r{rack:02}", self.seconds // 2
        return made

    def write(self, path: Path, rng: np.random.Generator, faults: Faults, together: int = 1) -> None:
        """Pushes the hosts, or writes `together` of them at a time as a compaction would."""
        maker = LakeMaker(path)
        for begin in range(0, self.hosts, together):
            numbers = range(begin, min(begin + together, self.hosts))
            pushed = [self._host(number, rng, faults) for number in numbers]
            if together > 1:
                maker.push_together(pushed)
            else:
                maker.push(pushed[0])

    def _host(self, number: int, rng: np.random.Generator, faults: Faults) -> Pushed:
        host = host_name(number)
        rack = f"r{number // RACK_HOSTS:02}"
        level = rng.lognormal(0, self.sigma)
        load = rng.lognormal(0, self.load_sigma)
        # Mostly the host is slower as a whole; its kinds vary, too.
        kinds = sorted({seed.kind for seed in self.seeds})
        levels = dict(zip(kinds, level * rng.lognormal(0, self.sigma / 3, len(kinds)), strict=True))
        operations = []
        for seed in self.seeds:
            second, drawn = seed.draw(rng, self.seconds, load)
            dur = drawn * levels[seed.kind]
            if host == faults.tail and seed.kind in ("block", "io"):
                dur[rng.random(len(dur)) < 0.1] *= 10
            if host == faults.median and seed.kind in ("block", "io"):
                dur *= faults.median_ratio
            if rack == faults.rack and seed.kind in ("block", "io"):
                dur[second >= faults.rack_from] *= faults.rack_ratio
            device = rng.integers(len(DEVICES), size=len(dur)) if seed.kind == "block" else None
            if device is not None and host == faults.device:
                dur[device == DEVICES.index(faults.device_name)] *= 10
            ts = T0 + second * SECOND + rng.integers(SECOND, size=len(dur))
            whole = dur.astype(np.int64) + 1
            operations.append(Operations(seed.kind, seed.op, ts, whole))
            if device is not None:
                operations += [
                    Operations(seed.kind, seed.op, ts[device == n], whole[device == n], "device", name)
                    for n, name in enumerate(DEVICES)
                ]
        longest = max(operations, key=lambda one: one.dur.max(initial=0))
        at = int(longest.dur.argmax())
        slowest = {
            "ts": int(longest.ts[at]),
            "dur": int(longest.dur[at]),
            "kind": longest.kind,
            "op": longest.op,
            "process": "web",
            "tid": number,
            "object": "sda",
            "id": f"{longest.kind}:{number}",
        }
        bad = host in faults.hosts
        finding = {
            "nr": 0,
            "ts": T0 + SECOND,
            "dur": 50_000_000,
            "source": "finding",
            "target": "operation",
            "operation": "read",
            "victim": f"web/{number}",
            "mechanism": "device_slow" if bad else "runqueue",
            "root": None,
            "culprit_kind": "device" if bad else "process",
            "culprit": "sdc" if bad else "backup",
            "blamed_ns": 40_000_000 if bad else 5_000_000,
            "share": 0.8,
            "count": 3,
            "grade": "B",
            "confidence": "high" if bad else "low",
            "verdict": "waited for the device" if bad else "waited for a CPU",
            "id": f"op:{number}",
        }
        return Pushed(
            host,
            operations,
            dur=self.seconds * SECOND,
            recording=ulid(T0, number + 1),
            labels={"rack": rack, "kernel": "6.1.0" if number % 3 else "6.6.0"},
            findings=[finding],
            slowest=[slowest],
        )


def host_name(number: int) -> str:
    return f"web-{number:04}"
