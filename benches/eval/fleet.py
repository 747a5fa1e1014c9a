"""Whether questions about fleets name what is bad, and only that; what they cost; and whether Spark says the same.

    python3 benches/eval/fleet.py [found] [pushed] [cost] [spark] [--program BIN] [--fleets 20] [--hosts 1000] [--seconds 30]
                                  [--sigma 0.1] [--median 2] [--seed-lake DIR] [--folder DIR] [--json FILE]

found   simulated fleets with three bad hosts (one of ten operations ten times as long; a median twice as long; a
        device ten times as long) and one rack that is slower from some moment on: which are named, and who else.
pushed  one such fleet made of a real recording, which the program itself imports, pushes and compacts (--program).
cost    wall, CPU, memory and bytes read for 1 to 10,000 hosts, also compacted, of one host and of a window.
spark   a master and two workers on loopback: every question against DuckDB, and one with a worker killed meanwhile.

Without a word all of them. Seeds are fixed.
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
    parser.add_argument("--program", help="the program that pushes")
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--sigma", type=float, default=0.1, help="by which healthy hosts differ (of the logarithm)")
    parser.add_argument("--median", type=float, default=2.0, help="how much slower the host is that is slower throughout")
    parser.add_argument("--seed-lake", type=pathlib.Path, help="a lake of real recordings to draw from")
    parser.add_argument("--folder", type=pathlib.Path, help="where lakes are made; removed without")
    parser.add_argument("--json", type=pathlib.Path, help="what was measured, for other programs")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - {"found", "pushed", "cost", "spark"}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return arguments


def main():
    arguments = parsed()
    # Ended from outside, too, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts = arguments.parts or ["found", "pushed", "cost", "spark"]
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="whyslow-fleet-"))
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    measured, status = {}, 0
    try:
        rng = numpy.random.default_rng(1)
        seeds = simulate.of_lake(arguments.seed_lake) if arguments.seed_lake else simulate.made_up(rng)
        if not seeds:
            sys.exit(f"error: {arguments.seed_lake} has no operations to draw from")
        if "found" in parts:
            measured["found"], ok = found.run(arguments, seeds, folder)
            status |= not ok
        if "pushed" in parts:
            if arguments.program is None:
                sys.exit("error: --program names the program that pushes")
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
    print(f"{time.monotonic() - begun:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
