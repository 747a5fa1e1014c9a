"""Gives a run the CPUs of a machine that does other work as well."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lab import Lab, UnavailableError

ROOT = Path("/sys/fs/cgroup/cpu")
SHARES_MAX = 262144
# Real-time threads of a group need a budget of their own; more is refused.
RT_US = 900_000
REMOVED_S = 10


def prefer(group: Path) -> None:
    """Gives a control group (v1) the highest weight; one with a quota needs that, too."""
    if (group / "cpu.shares").exists():
        (group / "cpu.shares").write_text(str(SHARES_MAX))


def give(budget: Path) -> None:
    """Sets the budget, once the watchdog has removed the group of a run that failed just now."""
    end = time.monotonic() + REMOVED_S
    while True:
        try:
            budget.write_text(str(RT_US))
            return
        except OSError as error:
            if time.monotonic() > end:
                reason = f"another group has the budget for real-time threads: {error}"
                raise UnavailableError(reason) from error
            time.sleep(0.1)


class Priority:
    """Programs that are started meanwhile are in a control group (v1) with the highest weight.

    Niceness does not suffice: the kernel compares it only within a session (autogroup).
    """

    def __init__(self, lab: Lab) -> None:
        self._group: Path | None = None
        if not (ROOT / "cpu.shares").exists():
            return
        group = ROOT / f"whyslow-run-{os.getpid()}"
        lab.will_undo("cgroup", str(group))
        group.mkdir()
        prefer(group)
        budget = group / "cpu.rt_runtime_us"
        if budget.exists():
            give(budget)
        self._group = group

    def __enter__(self) -> Priority:
        if self._group:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_: object) -> None:
        # A group with a process cannot be removed.
        if self._group:
            (ROOT / "cgroup.procs").write_text(str(os.getpid()))
