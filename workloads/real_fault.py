#!/usr/bin/env python3
"""Runs a scenario of real programs, its fault on and off, and prints culprits and times as JSON.

    sudo python3 workloads/real_fault.py redis_script --seed 7
    sudo python3 workloads/real_fault.py redis_script --record redis.wsl --whyslow ./whyslow

Servers start before the recorder, clients before or after it. Prints {"skipped": REASON} and exits
with status 77 if this machine cannot run the scenario.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from lab import Lab, UnavailableError
from real import catalogue
from real.priority import Priority
from real.recorder import Recorder
from real.scenario import Scenario, WaitingPlan
from web.stack import PYTHON, Stack

SKIPPED = 77
# More than any scenario needs, with the start of its servers; then the watchdog kills it.
SECONDS_MAX = 120


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", help="the scenario")
    parser.add_argument("--half", choices=catalogue.HALVES, help="consider only one half")
    parser.add_argument("--list", action="store_true", help="list the scenarios as JSON")
    parser.add_argument(
        "--packages", action="store_true", help="list the Debian packages that are missing"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed of its parameters")
    parser.add_argument("--record", metavar="OUT.wsl", type=Path, help="record it; keeps the spool")
    parser.add_argument("--whyslow", default=os.environ.get("WHYSLOW", "whyslow"))
    parser.add_argument(
        "-o", "--output", type=Path, help="write the ground truth to OUTPUT instead of stdout"
    )
    arguments = parser.parse_args()
    if not arguments.list and not arguments.packages and not arguments.name:
        parser.error("no scenario named; --list lists them")
    return arguments


def listed(halves: list[str]) -> dict[str, Any]:
    kinds, broken = {}, {}
    for half in halves:
        found, failed = catalogue.scenarios(half)
        broken.update(failed)
        for name, kind in found.items():
            about = {"half": half, "about": kind.about, "null": kind.is_null}
            kinds[name] = {**about, "missing": kind.missing()}
    return {"scenarios": kinds, "broken": broken}


def found(name: str, halves: list[str]) -> type[Scenario]:
    for half in halves:
        kinds, broken = catalogue.scenarios(half)
        if name in kinds:
            return kinds[name]
        for module, why in broken.items():
            print(f"warning: {module} cannot be imported: {why}", file=sys.stderr)
    sys.exit(f"error: unknown scenario `{name}`")


def made(kind: type[Scenario], arguments: argparse.Namespace) -> dict[str, Any]:
    with Lab(SECONDS_MAX) as lab, Priority(lab), Stack(lab) as stack:
        plan = WaitingPlan(arguments.seed, lab.folder, kind.on, kind.rounds)
        scenario = kind(lab, stack, plan)
        kind.check()
        scenario.setup()
        recorder: Any = contextlib.nullcontext()
        if arguments.record:
            recorder = Recorder(lab, arguments.whyslow, arguments.record)
        with recorder:
            # The recorder lists open connections before its first event.
            time.sleep(0.3)
            plan.begin()
            scenario.load()
            faults = scenario.inject()
            truth = scenario.truth(faults)
            time.sleep(0.2)
        return truth.as_dict()


def use_python_of_packages() -> None:
    """Modules of Debian packages are those of Debian's Python, which may not be first in PATH."""
    if Path(PYTHON).exists() and not Path(sys.executable).samefile(PYTHON):
        os.execv(PYTHON, [PYTHON, *sys.argv])


def main() -> int:
    arguments = parsed()
    halves = [arguments.half] if arguments.half else list(catalogue.HALVES)
    if arguments.list:
        print(json.dumps(listed(halves), indent=2))
        return 0
    if arguments.packages:
        kinds = [kind for half in halves for kind in catalogue.scenarios(half)[0].values()]
        for package in sorted({package for kind in kinds for package in kind.missing()}):
            print(package)
        return 0
    kind = found(arguments.name, halves)
    head: dict[str, Any] = {"scenario": arguments.name, "seed": arguments.seed, "pid": os.getpid()}
    status, head["begin_ns"] = 0, time.time_ns()
    try:
        truth = made(kind, arguments)
    except UnavailableError as error:
        print(f"skipped: {error}", file=sys.stderr)
        status, truth = SKIPPED, {"skipped": str(error)}
    head["end_ns"] = time.time_ns()
    text = json.dumps({**head, **truth})
    if arguments.output:
        arguments.output.write_text(text)
    else:
        print(text)
    return status


if __name__ == "__main__":
    use_python_of_packages()
    sys.exit(main())
