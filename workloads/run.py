#!/usr/bin/env python3
"""Causes a real incident on this machine, and prints the ground truth as JSON.

    sudo python3 workloads/run.py sync_storm
    sudo python3 workloads/run.py bad_disk --set readers=8 --set engine=libaio --set depth=4
    sudo python3 workloads/run.py cold_sendfile --record film.wsl
    sudo python3 workloads/run.py dns_stall --folder out --record out/recording.wsl

Prints {"skipped": REASON} and exits with status 77 if this machine cannot run the workload.
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
from web import dns_stall, image_board, word_service
from web.incident import Run

WORKLOADS = {
    "sync_storm": sync_storm,
    "temp_files": temp_files,
    "bad_disk": bad_disk,
    "cold_sendfile": cold_sendfile,
    "throttled": throttled,
}
# Their servers start before the recording.
WEB = {"dns_stall": dns_stall, "image_board": image_board, "word_service": word_service}
SKIPPED = 77
# Time for setup and cleanup, in addition to the load.
AROUND_SECONDS = 60


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=[*WORKLOADS, *WEB])
    parser.add_argument(
        "--for",
        dest="seconds",
        metavar="SECONDS",
        type=float,
        default=60,
        help="run the load for at most SECONDS [default: 60]",
    )
    parser.add_argument("--record", metavar="OUT.wsl", help="record the incident with whyslow")
    parser.add_argument(
        "--whyslow",
        default=os.environ.get("WHYSLOW", "whyslow"),
        help="path of whyslow [default: $WHYSLOW, or whyslow in PATH]",
    )
    parser.add_argument(
        "--parameters",
        type=Path,
        default=bad_disk.PARAMETERS,
        help="parameters of bad_disk, a JSON file",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of bad_disk",
    )
    web = parser.add_argument_group("web servers")
    web.add_argument(
        "--folder", type=Path, help="write requests and logs to FOLDER [default: that of --record]"
    )
    web.add_argument(
        "--threads", help="number of client threads; 1,5,20 for one load after another"
    )
    web.add_argument("--each", type=int, help="requests per thread")
    web.add_argument("--seed", type=int, default=1, help="random seed")
    web.add_argument(
        "--load", metavar="WHYSLOW", help="send requests with `WHYSLOW load` instead of Python"
    )
    web.add_argument("--keepalive", action="store_true", help="reuse connections")
    web.add_argument("--language", choices=dns_stall.SHOPS, default="python", help="of the shop")
    web.add_argument("--healthy", action="store_true", help="run without the fault, for comparison")
    return parser.parse_args()


def web_run(arguments: argparse.Namespace) -> Run:
    recording = Path(arguments.record).resolve() if arguments.record else None
    folder = arguments.folder or (recording.parent if recording else None)
    if folder is None:
        sys.exit("error: no output folder\nhint: add --folder FOLDER or --record OUT.wsl")
    run = Run(folder.resolve(), arguments.seconds, recording=recording)
    run.recorder, run.load, run.seed = arguments.whyslow, arguments.load, arguments.seed
    run.keep, run.language, run.healthy = arguments.keepalive, arguments.language, arguments.healthy
    threads, each = WEB[arguments.name].LOAD
    run.threads = [int(count) for count in (arguments.threads or str(threads)).split(",")]
    run.each = arguments.each or each
    run.pause_ms = getattr(WEB[arguments.name], "PAUSE_MS", 0)
    return run


def parameters_of(arguments: argparse.Namespace) -> dict[str, Any]:
    parameters = json.loads(arguments.parameters.read_text())
    for change in arguments.set:
        name, _, value = change.partition("=")
        if name not in parameters:
            sys.exit(f"error: unknown parameter `{name}`")
        parameters[name] = type(parameters[name])(value)
    return parameters


def record(arguments: argparse.Namespace) -> None:
    """Executes the recorder, which runs this script again."""
    program = shutil.which(arguments.whyslow)
    if program is None:
        sys.exit(f"error: cannot find `{arguments.whyslow}`\nhint: add --whyslow PATH")
    words = [program, "record", "-o", arguments.record, "--", sys.executable, __file__]
    words += [arguments.name, "--for", str(arguments.seconds)]
    words += ["--parameters", str(arguments.parameters)]
    for change in arguments.set:
        words += ["--set", change]
    os.execv(program, words)


def main() -> int:
    arguments = parsed()
    is_web = arguments.name in WEB
    if arguments.record and not is_web:
        record(arguments)
    options = [web_run(arguments) if is_web else arguments.seconds]
    if arguments.name == "bad_disk":
        options.append(parameters_of(arguments))
    try:
        with Lab(arguments.seconds + AROUND_SECONDS) as lab:
            begin = time.time_ns()
            truth = {**WORKLOADS, **WEB}[arguments.name].work(lab, *options)
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
