"""A container with an insufficient CPU quota: it is throttled while CPUs are idle."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from lab import Lab, UnavailableError, needs

PERIOD_US = 100_000
QUOTA_US = 20_000
CPU_NS = 500_000_000


class Group:
    """A cgroup (v1 or v2) with a CPU quota."""

    def __init__(self, lab: Lab) -> None:
        old, new = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
        name = f"whyslow-lab-{os.getpid()}"
        if (old / "cpu.cfs_quota_us").exists() or (old / "cpu.shares").exists():
            self.version = 1
            self._make(lab, old / name)
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        elif (new / "cgroup.controllers").exists():
            if "cpu" not in (new / "cgroup.controllers").read_text().split():
                raise UnavailableError("the cpu controller is not available in cgroup v2")
            self.version = 2
            control = new / "cgroup.subtree_control"
            if "cpu" not in control.read_text().split():
                lab.will_undo("controller", str(control), "cpu")
                control.write_text("+cpu")
            self._make(lab, new / name)
        else:
            raise UnavailableError("the machine has no cgroup with a cpu controller")
        self.limit(QUOTA_US)

    def limit(self, quota_us: int | None) -> None:
        """Sets the CPU time per period; None removes the limit."""
        if self.version == 1:
            (self.path / "cpu.cfs_quota_us").write_text(str(quota_us or -1))
        else:
            (self.path / "cpu.max").write_text(f"{quota_us or 'max'} {PERIOD_US}")

    def _make(self, lab: Lab, path: Path) -> None:
        self.path = path
        lab.will_undo("cgroup", str(path))
        try:
            path.mkdir()
        except OSError as error:
            raise UnavailableError(f"cannot create `{path}`: {error.strerror}") from error

    def stat(self) -> dict[str, int]:
        """Number of periods, throttled periods, and throttled time."""
        lines = (self.path / "cpu.stat").read_text().splitlines()
        words = {name: int(value) for name, value in (line.split() for line in lines)}
        name, ns = ("throttled_time", 1) if self.version == 1 else ("throttled_usec", 1000)
        return {
            "periods": words["nr_periods"],
            "throttled_periods": words["nr_throttled"],
            "throttled_ns": words[name] * ns,
        }


def burn(procs: Path) -> dict[str, Any]:
    procs.write_text(str(os.getpid()))
    begin, start = time.time_ns(), time.perf_counter_ns()
    before = time.process_time_ns()
    while time.process_time_ns() - before < CPU_NS:
        # Reading the CPU clock is a system call: compute between two of them.
        sum(range(20_000))
    return {
        "pid": os.getpid(),
        "comm": "container",
        "begin_ns": begin,
        "dur_ns": time.perf_counter_ns() - start,
        "cpu_ns": time.process_time_ns() - before,
    }


def work(lab: Lab, seconds: float) -> dict[str, Any]:
    del seconds  # CPU_NS of CPU time, which the quota stretches by five
    needs()
    group = Group(lab)
    guilty = lab.start("container", burn, group.path / "cgroup.procs").result()
    return {
        "cgroup": str(group.path),
        "version": group.version,
        "guilty": guilty,
        "quota_us": QUOTA_US,
        "period_us": PERIOD_US,
        **group.stat(),
    }
