"""The interface of a scenario: real programs, a load, and a fault that is switched on and off.

README.md in this folder describes the order of the calls and what each has to do.
"""

from __future__ import annotations

import glob
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, ClassVar

from faults.plan import Plan, Span, excess, overlap, undisturbed
from faults.truth import Culprit, Truth
from lab import Actor, Lab, UnavailableError
from web.stack import PYTHON, Stack

__all__ = ["Scenario", "WaitingPlan", "is_installed"]


class WaitingPlan(Plan):
    """A plan that processes can wait for, because servers and clients start before the recorder."""

    def __init__(self, seed: int, folder: Path, on: tuple[float, float], rounds: int) -> None:
        super().__init__(seed, on, rounds)
        self._file = folder / "plan.json"

    def begin(self) -> WaitingPlan:
        super().begin()
        ready = self._file.with_suffix(".new")
        ready.write_text(json.dumps({"windows": self.windows, "until": self.until}))
        ready.rename(self._file)
        return self

    def wait(self) -> None:
        """In a client that started before the recorder: waits for the schedule."""
        while not self._file.exists():
            time.sleep(0.05)
        made = json.loads(self._file.read_text())
        self.windows = [(begin, end) for begin, end in made["windows"]]
        self.until = made["until"]


class Scenario:
    """Base class; a subclass with a `name` in a module of `tuned` or `sealed` is a scenario."""

    # Unique among all scenarios, in the style of the faults: lower case with underscores.
    name: ClassVar[str] = ""
    # One sentence for the report: victim, culprit and what the culprit does.
    about: ClassVar[str] = ""
    # What has to exist → its Debian package. A command, a path with wildcards if it has a slash, or
    # `python:MODULE` for a module of Debian's Python.
    packages: ClassVar[dict[str, str]] = {}
    # Lengths in seconds of the windows in which the fault is active, and their number. With about a
    # second between them, a run should take 10 to 20 seconds.
    on: ClassVar[tuple[float, float]] = (1.2, 2.0)
    rounds: ClassVar[int] = 4
    # A load without a fault: no culprit is right.
    is_null: ClassVar[bool] = False

    def __init__(self, lab: Lab, stack: Stack, plan: WaitingPlan) -> None:
        self.lab = lab
        self.stack = stack
        self.plan = plan

    def setup(self) -> None:
        """Starts servers, and clients that are connected already. Not recorded."""

    def load(self) -> None:
        """Starts the rest of the clients. The recorder runs and the plan has begun."""

    def begin_fault(self) -> None:
        """Switches the fault on."""

    def end_fault(self) -> None:
        """Switches the fault off."""

    def inject(self) -> list[Span]:
        """Runs the phases; the spans in which the fault was active, CLOCK_MONOTONIC.

        Override this only if the fault is not switched from here.
        """
        return self.plan.switch(self.begin_fault, self.end_fault)

    def truth(self, faults: list[Span]) -> Truth:
        """Ends the load; the culprits, and the operations of the victims from their own logs."""
        raise NotImplementedError

    # Helpers.

    def client(self, name: str, do: Callable[..., Any], *arguments: Any) -> Actor:
        """Starts a process named `name` that calls `do(plan, *arguments)`; see `Actor.result`.

        One that starts in `setup` calls `plan.wait()` once it is connected.
        """
        return self.lab.start(name, do, self.plan, *arguments)

    def slowed(
        self, victim: dict[str, Any], call: str, faults: list[Span], culprit: Culprit
    ) -> Truth:
        """The truth of one victim and one culprit that causes all time beyond the usual."""
        truth = Truth(self.plan, faults, [culprit])
        self.add_slowed(truth, victim, call, faults)
        return truth

    def add_slowed(
        self, truth: Truth, victim: dict[str, Any], call: str, faults: list[Span]
    ) -> None:
        """Adds the operations of a victim to the truth of a single culprit."""
        spans = [(begin, end) for begin, end in victim["spans"]]
        usual = undisturbed(spans, faults)
        for span in spans:
            truth.add(victim, call, span, [excess(span, faults, usual)])

    def held(self, victim: dict[str, Any], call: str, holds: list[Span], culprit: Culprit) -> Truth:
        """The truth if the culprit recorded the spans in which it made others wait."""
        truth = Truth(self.plan, holds, [culprit])
        for begin, end in victim["spans"]:
            truth.add(victim, call, (begin, end), [overlap((begin, end), holds)])
        return truth

    def steady(self, victim: dict[str, Any], call: str) -> Truth:
        """The truth of a load without a fault."""
        truth = Truth(self.plan, [], [])
        for begin, end in victim["spans"]:
            truth.add(victim, call, (begin, end), [])
        return truth

    @classmethod
    def missing(cls) -> list[str]:
        """Packages that have to be installed."""
        return sorted({package for need, package in cls.packages.items() if not is_installed(need)})

    @classmethod
    def check(cls) -> None:
        if missing := cls.missing():
            raise UnavailableError(f"not installed: {', '.join(missing)}")


def is_installed(need: str) -> bool:
    kind, _, module = need.partition(":")
    if kind == "python" and module:
        done = subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False)
        return done.returncode == 0
    return bool(glob.glob(need)) if "/" in need else shutil.which(need) is not None
