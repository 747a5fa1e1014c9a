"""The form in which a fault tells who is guilty of what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from faults.plan import MS, Plan, Span


@dataclass
class Thing:
    """What it is about, by one of its names."""

    # device, file, lock, futex, peer, cgroup, host; any where the name says enough.
    kind: str
    name: str


@dataclass
class Culprit:
    """Who is guilty, and what passes for naming it.

    The first mechanism is the one that is meant; the others say the same of another place of the
    same chain. `near` are names and ids of those who act on its behalf: to name them is no lie,
    but not the answer either.
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
    # Kinds of findings that say it of the whole recording.
    findings: list[str] = field(default_factory=list)


class Truth:
    def __init__(self, plan: Plan, faults: list[Span], culprits: list[Culprit]) -> None:
        self._plan = plan
        self._faults = faults
        self._culprits = culprits
        self._ops: list[dict[str, Any]] = []
        # Whatever else takes a CPU meanwhile would be put down to the culprit.
        self.needs_quiet = False
        self.notes: dict[str, Any] = {}

    def add(self, who: dict[str, Any], call: str, span: Span, blame: list[int]) -> None:
        """An operation of a victim, and the ns of it that each culprit is guilty of."""
        offset = self._plan.offset
        self._ops.append(
            {
                "pid": who["pid"],
                "tid": who["tid"],
                "comm": who["comm"],
                "call": call,
                "begin_ns": span[0] + offset,
                "end_ns": span[1] + offset,
                "true_blame_ms": [round(ns / MS, 4) for ns in blame],
            }
        )

    def told(self) -> dict[str, Any]:
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
