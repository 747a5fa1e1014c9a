#!/usr/bin/env python3
"""Makes an incident for real on this machine, and tells the truth about it as JSON.

    sudo python3 workloads/run.py sync_storm
    sudo python3 workloads/run.py bad_disk --set readers=8 --set engine=libaio --set depth=4
    sudo python3 workloads/run.py cold_sendfile --record film.wsl

Status 77, and {"skipped": why}: this machine cannot do it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import bad_disk
import cold_sendfile
import sync_storm
import temp_files
import throttled
from lab import Lab, UnavailableError

WORKLOADS = {
    "sync_storm": sync_storm,
    "temp_files": temp_files,
    "bad_disk": bad_disk,
    "cold_sendfile": cold_sendfile,
    "throttled": throttled,
}
SKIPPED = 77
# What making and undoing may take beside the load itself.
AROUND_SECONDS = 60


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=WORKLOADS)
    parser.add_argument(
        "--for", dest="seconds", type=float, default=60, help="seconds of load at most"
    )
    parser.add_argument("--record", metavar="OUT.wsl", help="record it with whyslow")
    parser.add_argument(
        "--whyslow", default=os.environ.get("WHYSLOW", "whyslow"), help="the program to record with"
    )
    parser.add_argument(
        "--parameters", type=Path, default=bad_disk.PARAMETERS, help="of bad_disk, a JSON file"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one of the parameters"
    )
    return parser.parse_args()


def parameters_of(arguments: argparse.Namespace) -> dict[str, Any]:
    parameters = json.loads(arguments.parameters.read_text())
    for change in arguments.set:
        name, _, value = change.partition("=")
        if name not in parameters:
            sys.exit(f"error: there is no parameter `{name}`")
        parameters[name] = type(parameters[name])(value)
    return parameters


def record(arguments: argparse.Namespace) -> None:
    """Becomes a recorder that starts us again."""
    program = shutil.which(arguments.whyslow)
    if program is None:
        sys.exit(f"error: there is no `{arguments.whyslow}`: --whyslow PATH")
    words = [program, "record", "-o", arguments.record, "--", sys.executable, __file__]
    words += [arguments.name, "--for", str(arguments.seconds)]
    words += ["--parameters", str(arguments.parameters)]
    for change in arguments.set:
        words += ["--set", change]
    os.execv(program, words)


def main() -> int:
    arguments = parsed()
    if arguments.record:
        record(arguments)
    options = [arguments.seconds]
    if arguments.name == "bad_disk":
        options.append(parameters_of(arguments))
    try:
        with Lab(arguments.seconds + AROUND_SECONDS) as lab:
            begin = time.time_ns()
            truth = WORKLOADS[arguments.name].work(lab, *options)
            end = time.time_ns()
    except UnavailableError as error:
        print(f"skipped: {error}", file=sys.stderr)
        print(json.dumps({"workload": arguments.name, "skipped": str(error)}))
        return SKIPPED
    head = {"workload": arguments.name, "begin_ns": begin, "end_ns": end}
    print(json.dumps({**head, **truth}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
