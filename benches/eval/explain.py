"""How often `whyslow explain` names the right culprit, measured with injected faults.

Each fault of workloads/fault.py runs with several seeds and is recorded. The slowest operations of its
victim are explained, and the verdict is compared with the timestamps of the injector and the victim.
Simpler methods answer the same query from the same tables. Everything is repeated on recordings from
which events were dropped.

    python3 benches/eval/explain.py WHYSLOW [--seeds 3] [--only NAME] [--subset] [--report]

Each run stays in its folder below --folder and is not repeated; --again evaluates existing runs again.
"""

import argparse
import os
import pathlib
import signal
import sys

from explaining import report, runs, tables

# One fault per kind of slowness, within ten minutes.
SUBSET = (
    "sync_storm noisy_neighbour bad_disk rt_hog quota futex_convoy barging slow_server lost_packets "
    "fsync_neighbour held_io stop_signal delayed_acknowledgement "
    "null_computing null_messages two_faults"
).split()


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("whyslow", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each fault")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="may be repeated"
    )
    parser.add_argument("--subset", action="store_true", help="a few faults once, in ten minutes")
    parser.add_argument(
        "--record-only", action="store_true", help="record the faults without explaining them"
    )
    parser.add_argument("--again", action="store_true", help="evaluate existing runs again")
    parser.add_argument("--no-ablation", action="store_true", help="evaluate complete recordings only")
    parser.add_argument(
        "--check", action="store_true", help="fail if results fall below a threshold (with --subset, for tests)"
    )
    parser.add_argument("--report", action="store_true", help="write docs/evaluation.md")
    cache = os.environ.get("WHYSLOW_CACHE", str(pathlib.Path.home() / ".cache/whyslow-dev"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(cache) / "eval")
    return parser.parse_args()


def main():
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    arguments = parsed()
    catalogue = runs.catalogue()
    names = arguments.only or (SUBSET if arguments.subset else list(catalogue["faults"]))
    unknown = [name for name in names if name not in catalogue["faults"]]
    if unknown:
        sys.exit(f"error: unknown fault {', '.join(unknown)}")
    for what, why in catalogue["missing"].items():
        print(f"skipped: {what}: {why}")
    seeds = 1 if arguments.subset else arguments.seeds
    wanted = [(name, arguments.first_seed + n) for n in range(seeds) for name in names]
    variants = runs.FEW if arguments.subset else list(runs.ABLATIONS)
    variants = ["whole"] if arguments.no_ablation else variants
    runner = runs.Runner(arguments.whyslow.resolve(), arguments.folder, variants)
    if arguments.record_only:
        for name, seed in wanted:
            why = runner.record(name, seed, catalogue["faults"][name])
            print(f"{name} {seed}: {'recorded' if why is None else 'failed: ' + why}", flush=True)
        return
    results = []
    for name, seed in wanted:
        result = runner.result(name, seed, catalogue["faults"][name], arguments.again)
        print(tables.line(result), flush=True)
        results.append(result)
    print()
    print("\n".join(tables.summary(results)))
    if arguments.report:
        report.write(results, catalogue)
    if arguments.check:
        complaints = [f"error: {text}" for text in tables.complaints(results, variants)]
        if complaints:
            sys.exit("\n".join(complaints))


main()
