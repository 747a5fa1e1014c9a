"""Accuracy and cost of fleet queries, and whether Spark returns the same results.

    python3 benches/eval/fleet.py [found] [pushed] [cost] [spark] [--program BIN] [--fleets 20] [--hosts 1000] [--seconds 30]
                                  [--sigma 0.1] [--median 2] [--seed-lake DIR] [--folder DIR] [--json FILE]

found   simulated fleets with three bad hosts (a tenth of the operations ten times as long; a median twice as long; a
        device ten times as slow) and one rack that becomes slower at some point: true and false detections.
pushed  one such fleet made from a real recording, which the program imports, pushes and compacts (--program).
cost    wall time, CPU time, memory and bytes read for 1 to 10,000 hosts, compacted, for one host and for a window.
spark   a master and two workers on loopback: every query against DuckDB, and one while a worker is killed.

By default, all parts run. Seeds are fixed.
"""

import argparse
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import numpy
from fleets import cluster, cost, found, pushed, simulate


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="found, pushed, cost, spark")
    parser.add_argument("--program", help="whyslow binary for `pushed`")
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--sigma", type=float, default=0.1, help="standard deviation between healthy hosts (of the logarithm)")
    parser.add_argument("--median", type=float, default=2.0, help="slowdown factor of the host that is slower throughout")
    parser.add_argument("--seed-lake", type=pathlib.Path, help="lake of real recordings to sample from")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the lakes in FOLDER (default: a temporary folder)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results to FILE as JSON")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - {"found", "pushed", "cost", "spark"}
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    return arguments


def main():
    arguments = parsed()
    # Clean up child processes on SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts = arguments.parts or ["found", "pushed", "cost", "spark"]
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="whyslow-fleet-"))
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    measured, status = {}, 0
    try:
        rng = numpy.random.default_rng(1)
        seeds = simulate.of_lake(arguments.seed_lake) if arguments.seed_lake else simulate.made_up(rng)
        if not seeds:
            sys.exit(f"error: cannot sample from {arguments.seed_lake}: no operations")
        if "found" in parts:
            measured["found"], ok = found.run(arguments, seeds, folder)
            status |= not ok
        if "pushed" in parts:
            if arguments.program is None:
                sys.exit("error: `pushed` needs --program BIN")
            measured["pushed"], ok = pushed.run(arguments, folder)
            status |= not ok
        if "cost" in parts:
            measured["cost"] = cost.run(arguments, seeds, folder)
        if "spark" in parts:
            measured["spark"], ok = cluster.run(seeds, folder)
            status |= not ok
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1))
    print(f"{time.monotonic() - started:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
