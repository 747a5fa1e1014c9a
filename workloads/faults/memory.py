"""A cgroup with too little memory."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Any

from faults.plan import Plan, excess, repeat, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import Lab, UnavailableError, needs, run

MIB = 1 << 20
TOUCHED = 128
CHUNK = 8


def swap(lab: Lab) -> None:
    """Sets up zram as swap; only a cgroup with a memory limit uses it."""
    needs("mkswap", "swapon")
    device = Path("/sys/block/zram0")
    if not device.exists() or (device / "disksize").read_text().strip() != "0":
        raise UnavailableError("zram0 is not available")
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        raise UnavailableError("the machine has other swap")
    lab.will_undo("swap", "/dev/zram0")
    (device / "disksize").write_text(str(256 * MIB))
    run("mkswap", "/dev/zram0")
    run("swapon", "/dev/zram0")


def reclaim(lab: Lab, plan: Plan) -> Truth:
    root = Path("/sys/fs/cgroup/memory")
    if not (root / "memory.limit_in_bytes").exists():
        raise UnavailableError("there is no memory controller of cgroup v1")
    swap(lab)
    group = root / f"whyslow-lab-{os.getpid()}"
    lab.will_undo("cgroup", str(group))
    group.mkdir()
    (group / "memory.swappiness").write_text("100")
    limit = group / "memory.limit_in_bytes"
    bytes_max = plan.whole(72, 96) * MIB
    plan.begin()
    victim = lab.start("container", touch, plan, group)
    faults = plan.switch(lambda: shrink(limit, bytes_max), lambda: limit.write_text("-1"))
    result = victim.result()
    names = ["reclaim", "swap_in", "memory_throttle"]
    culprit = Culprit("cgroup", group.name, names, near=["container", "zram0"])
    culprit.objects = [Thing("cgroup", group.name), Thing("device", "zram0")]
    truth = Truth(plan, faults, [culprit])
    truth.needs_quiet = True
    own = undisturbed(result["spans"], faults)
    for span in result["spans"]:
        truth.add(result, "", span, [excess(span, faults, own)])
    return truth


def shrink(limit: Path, bytes_max: int) -> None:
    """Lowers the limit in steps: a write fails while pages arrive faster than they are freed."""
    deadline = time.monotonic() + 2
    at = (TOUCHED + 16) * MIB
    while at > bytes_max:
        at = max(at - 8 * MIB, bytes_max)
        while time.monotonic() < deadline:
            try:
                limit.write_text(str(at))
                break
            except OSError:
                time.sleep(0.01)
        else:
            raise UnavailableError("the kernel cannot shrink the cgroup below its limit")


def touch(plan: Plan, group: Path) -> dict[str, Any]:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    memory = mmap.mmap(-1, TOUCHED * MIB)
    pages = [bytes([1 + n % 250]) * 16 + os.urandom(48) for n in range(64)]
    turn = 0

    def some() -> None:
        nonlocal turn
        begin = turn % (TOUCHED // CHUNK) * CHUNK * MIB
        for at in range(begin, begin + CHUNK * MIB, 4096):
            memory[at : at + 64] = pages[at // 4096 % 64]
        turn += 1

    for _ in range(TOUCHED // CHUNK):
        some()
    return repeat(plan, some, 0.01)
