"""How often `whyslow explain` is right on real programs.

Each scenario of workloads/real runs with several seeds and is recorded with the default topics. The
whole recording is explained, and the slowest operations of the victim, in the ways that a user has;
the answers are compared with the logs of the programs and the injector.

    python3 benches/eval/real.py WHYSLOW [--half tuned|sealed] [--seeds 5] [--only NAME] [--report]

Each run stays in its folder below --folder and is not repeated; --again evaluates existing runs again.
Nothing of the sealed half is printed but whether it is right.
"""

import argparse
import pathlib
import signal
import sys

from real_programs import report, runs, tables


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("whyslow", type=pathlib.Path)
    parser.add_argument("--half", choices=tables.HALVES, help="only this half")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each scenario")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="may be repeated"
    )
    parser.add_argument(
        "--record-only", action="store_true", help="record the scenarios without explaining them"
    )
    parser.add_argument("--again", action="store_true", help="evaluate existing runs again")
    parser.add_argument("--report", action="store_true", help="write docs/evaluation-real.md")
    parser.add_argument(
        "--patience",
        type=float,
        default=90,
        metavar="SECONDS",
        help="wait at most SECONDS for a calm machine before a run [default: 90]",
    )
    parser.add_argument("--folder", type=pathlib.Path, help="default: eval-real in the cache")
    return parser.parse_args()


def main():
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    arguments = parsed()
    if arguments.report and (arguments.half or arguments.only):
        sys.exit("error: a report needs both halves\nhint: leave out --half and --only")
    catalogue = runs.catalogue(arguments.half)
    kinds = catalogue["scenarios"]
    unknown = [name for name in arguments.only if name not in kinds]
    if unknown:
        sys.exit(f"error: unknown scenario {', '.join(unknown)}")
    for module, why in catalogue["broken"].items():
        print(f"skipped: {module}: {why}")
    names = arguments.only or list(kinds)
    wanted = [(name, arguments.first_seed + n) for n in range(arguments.seeds) for name in names]
    folder = runs.folder_of(arguments.folder)
    runner = runs.RealRunner(arguments.whyslow.resolve(), folder, arguments.patience)
    if arguments.record_only:
        for name, seed in wanted:
            why = runner.record(name, seed, kinds[name])
            print(f"{name} {seed}: {'recorded' if why is None else 'failed: ' + why}", flush=True)
        return
    results = []
    for name, seed in wanted:
        result = runner.result(name, seed, kinds[name], arguments.again)
        print(tables.line(result), flush=True)
        results.append(result)
    print("\n".join(tables.printed(results)))
    if arguments.report:
        report.write(results)


if __name__ == "__main__":
    main()
