#!/usr/bin/env python3
"""Injects a fault, on and off within seconds, and prints the culprits and their time as JSON.

    sudo python3 workloads/fault.py noisy_neighbour --seed 7
    sudo whyslow record -o noisy.wsl -- python3 workloads/fault.py noisy_neighbour

Prints {"skipped": REASON} and exits with status 77 if this machine cannot inject it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from faults.catalogue import FAULTS, MISSING
from faults.plan import Plan
from lab import Lab, UnavailableError

SKIPPED = 77
# More than any fault needs; then the watchdog kills it.
SECONDS_MAX = 40


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=FAULTS)
    parser.add_argument(
        "--list", action="store_true", help="list the faults, and the events to record for each"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed of its parameters")
    parser.add_argument(
        "-o", "--output", type=Path, help="write the ground truth to OUTPUT instead of stdout"
    )
    arguments = parser.parse_args()
    if not arguments.list and not arguments.name:
        parser.error("no fault named; --list lists them")
    return arguments


def listed() -> dict[str, object]:
    kinds = {
        name: {"number": fault.number, "what": fault.what, "stacks": fault.stacks}
        for name, fault in FAULTS.items()
    }
    return {"faults": kinds, "missing": MISSING}


def main() -> int:
    arguments = parsed()
    if arguments.list:
        print(json.dumps(listed(), indent=2))
        return 0
    fault = FAULTS[arguments.name]
    plan = Plan(arguments.seed, fault.on, fault.rounds)
    head = {"scenario": arguments.name, "number": fault.number, "seed": arguments.seed}
    head["pid"] = os.getpid()
    status, begin = 0, time.time_ns()
    try:
        with Lab(SECONDS_MAX) as lab:
            truth = fault.make(lab, plan).as_dict()
    except UnavailableError as error:
        print(f"skipped: {error}", file=sys.stderr)
        status, truth = SKIPPED, {"skipped": str(error)}
    head["begin_ns"], head["end_ns"] = begin, time.time_ns()
    text = json.dumps({**head, **truth})
    if arguments.output:
        arguments.output.write_text(text)
    else:
        print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
