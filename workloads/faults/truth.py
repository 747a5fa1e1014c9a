"""Ground truth of a fault: culprits, and operations of the victim."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from faults.plan import MS, Plan, Span


@dataclass
class Thing:
    """An object by one of its names."""

    # device, file, lock, futex, peer, cgroup, host; any if the name suffices.
    kind: str
    name: str


@dataclass
class Culprit:
    """A culprit, and what counts as naming it.

    The first mechanism is the injected one; the others describe another place of the same chain.
    `near` has the names and ids of threads that work for the culprit: naming them is true, but not
    the answer.
    """

    # process, own, device, cgroup, peer
    kind: str
    name: str
    mechanisms: list[str]
    pid: int | None = None
    tid: int | None = None
    objects: list[Thing] = field(default_factory=list)
    # Children count as the process itself.
    with_children: bool = False
    near: list[str] = field(default_factory=list)
    # Other processes whose name is the same answer: the client that a server works for, the backend
    # that an idle client keeps in its transaction.
    also: list[int] = field(default_factory=list)
    # Threads of which any is the culprit, such as those of a garbage collector.
    tids: list[int] = field(default_factory=list)
    # Names of processes between victim and culprit: stopping there is not an answer.
    middlemen: list[str] = field(default_factory=list)
    # Kinds of observations about the whole recording that report it.
    observations: list[str] = field(default_factory=list)


class Truth:
    def __init__(self, plan: Plan, faults: list[Span], culprits: list[Culprit]) -> None:
        self._plan = plan
        self._faults = faults
        self._culprits = culprits
        self._ops: list[dict[str, Any]] = []
        # Other CPU load would be attributed to the culprit.
        self.needs_quiet = False
        self.notes: dict[str, Any] = {}

    def add(self, victim: dict[str, Any], call: str, span: Span, blame: list[int]) -> None:
        """Adds an operation of a victim, and the ns of it that each culprit caused."""
        offset = self._plan.offset
        self._ops.append(
            {
                "pid": victim["pid"],
                "tid": victim["tid"],
                "comm": victim["comm"],
                "call": call,
                "begin_ns": span[0] + offset,
                "end_ns": span[1] + offset,
                "true_blame_ms": [round(ns / MS, 4) for ns in blame],
            }
        )

    def as_dict(self) -> dict[str, Any]:
        offset = self._plan.offset
        self._ops.sort(key=lambda op: op["begin_ns"])
        return {
            "calendar_offset_ns": offset,
            "faults": [[begin + offset, end + offset] for begin, end in self._faults],
            "culprits": [asdict(culprit) for culprit in self._culprits],
            "needs_quiet": self.needs_quiet,
            "ops": self._ops,
            "notes": self.notes,
        }
