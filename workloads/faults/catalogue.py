"""All faults with their numbers in the list of faults, and the events to record for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from faults import cpu, disks, files, locks, memory, network, nulls
from faults.plan import Plan
from faults.truth import Truth
from lab import Lab

USUAL = "syscalls,sched,block,locks,dns,mem,fs,irq,work"
NET = f"{USUAL},tcp,net"


@dataclass
class Fault:
    number: str
    make: Callable[[Lab, Plan], Truth]
    what: str = USUAL
    stacks: str = "500us"
    # Active windows: minimum and maximum length in seconds, and their number.
    on: tuple[float, float] = (1.0, 1.6)
    rounds: int = 2


FAULTS = {
    "sync_storm": Fault("1", files.stormed),
    "cold_sendfile": Fault("2", files.sent_cold),
    "noisy_neighbour": Fault("3", disks.noisy_neighbour),
    "bad_disk": Fault("4", disks.bad_disk),
    "rt_hog": Fault("5", cpu.rt_hog),
    "quota": Fault("6", cpu.quota),
    "futex_convoy": Fault("7", locks.futex_convoy),
    "barging": Fault("8", locks.barging, rounds=3),
    "dns": Fault("9", network.dns, NET, on=(2.2, 2.6)),
    "lost_packets": Fault("10", network.lost_packets, NET, on=(2.0, 2.5)),
    "slow_server": Fault("11", network.slow_server, NET),
    "reclaim": Fault("12", memory.reclaim),
    "temporary_files": Fault("13", files.temporary_files),
    "fsync_neighbour": Fault("14", disks.fsync_neighbour),
    "fork_storm": Fault("15", cpu.fork_storm, on=(0.6, 0.9)),
    "log_flood": Fault("16", disks.log_flood),
    "held_io": Fault("17", disks.held_io),
    "stop_signal": Fault("18a", cpu.stop_signal),
    "stop_barrier": Fault("18b", locks.stop_barrier),
    "hidden_sleep": Fault("19a", files.hidden_sleep),
    "delayed_acknowledgement": Fault("19b", network.delayed_acknowledgement, NET),
    "udp_flood": Fault("20", network.udp_flood, NET, on=(0.5, 0.7)),
    "periodic_job": Fault("21", cpu.periodic_job),
    "null_computing": Fault("22a", nulls.computing),
    "null_cached_files": Fault("22b", nulls.cached_files),
    "null_messages": Fault("22c", nulls.messages),
    "null_healthy_disk": Fault("22d", nulls.healthy_disk),
    "null_short_locks": Fault("22e", nulls.short_locks),
    "two_faults": Fault("23", locks.two_faults),
}

# Faults of the list that are not injected, with the reason.
MISSING = {
    "11, the server untraced": "needs two machines, because a server on this machine is recorded",
    "21, every ten seconds": "twelve periods take two minutes; the job runs every second instead",
}
