"""Whether `load diff` reports a difference between two versions of a web server if and only if there is one.

Two versions, the second a tenth slower, run in short alternating blocks of load. Consecutive blocks of the first
version, dealt at random to both sides, must not be reported as different. Blocks of the two versions must be, with
as many requests as a comparison of the first version with itself reports as needed.

    python3 benches/eval/diff.py WHYSLOW [--blocks 300] [--pairs 200] [--folder DIR] [--again] [--sample FILE]

The measurements stay in the folder; --again evaluates them without a new load. --sample writes a part of them as
the fixture that the tests replay, and does not evaluate.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import arguments
from comparing import runs

# Maximum share of equal pairs that are reported as different; minimum share of different pairs that are found.
FALSE_MAX = 0.05
FOUND_MIN = 0.9
SAMPLE_BLOCKS = 120
BAD = ("worse", "better", "mixed")


def parsed():
    parser = arguments.parser(__doc__, "diff", seconds=0)
    parser.add_argument("--blocks", type=int, default=300, help="blocks of each version")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--each", type=int, default=20, help="requests per thread and block")
    parser.add_argument("--shift", type=float, default=0.1, help="relative slowdown of the second version as seen by clients")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sample", type=pathlib.Path)
    return parser.parse_args()


class Pairs:
    """Pairs of runs made of blocks, and the verdicts on them."""

    def __init__(self, whyslow, blocks, folder):
        self.whyslow, self.blocks, self.folder = whyslow, blocks, folder

    def side(self, name, blocks):
        """Writes a run of these blocks, ordered by time."""
        path = self.folder / f"{name}.ndjson"
        rows = sorted((row for block in blocks for row in block), key=lambda row: row["start_ns"])
        head = {"whyslow_load": 1, "begin_ns": rows[0]["start_ns"], "host": "", "arguments": []}
        lines = [head, *({**row, "seq": place} for place, row in enumerate(rows))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def compared(self, name, before, after):
        """The output of `load diff`."""
        paths = [self.side(f"{name}-before", before), self.side(f"{name}-after", after)]
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.folder / name)}
        command = [self.whyslow.resolve(), "load", "diff", *paths, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=cache)
        answer = json.loads(done.stdout)
        for path in paths:
            path.unlink()
        subprocess.run(["rm", "-r", self.folder / name], check=False)
        return answer["tables"][0]

    def dealt(self, number):
        """Consecutive pairs of blocks of the first version, one block of each pair for each side."""
        blocks, dice = self.blocks["a"], random.Random(number)
        sides = [], []
        for place in range(0, len(blocks) - 1, 2):
            first = dice.randrange(2)
            sides[first].append(blocks[place])
            sides[1 - first].append(blocks[place + 1])
        return sides

    def same(self, number):
        """Whether blocks of the first version are reported as different."""
        return self.compared(f"same-{number}", *self.dealt(number))["facts"]["verdict"] in BAD

    def slower(self, number):
        """Requests reported as needed, and whether that number finds the second version slower; None if there are
        too few."""
        pilot = self.compared(f"pilot-{number}", *self.dealt(10_000 + number))
        needed = next(row["requests_needed"] for row in pilot["rows"] if row["figure"] == "p50")
        count = max(-(-needed // len(self.blocks["a"][0])), 2)
        places = range(min(map(len, self.blocks.values())))
        if count > len(places):
            return needed, None
        places = random.Random(20_000 + number).sample(places, count)
        sides = [[self.blocks[side][place] for place in places] for side in "ab"]
        return needed, self.compared(f"slower-{number}", *sides)["facts"]["verdict"] == "worse"


def median_ms(blocks):
    return statistics.median(row["total_ns"] for block in blocks for row in block) / 1e6


def write_sample(path, blocks):
    """Version, block, and the durations of its requests in tenths of a ms, ordered by start."""
    lines = []
    for side, all_of in blocks.items():
        for number, block in enumerate(all_of[:SAMPLE_BLOCKS]):
            rows = sorted(block, key=lambda row: row["start_ns"])
            lines.append(" ".join([side, str(number), *(str(round(row["total_ns"] / 1e5)) for row in rows)]))
    path.write_text("\n".join(lines) + "\n")


def main():
    options = parsed()
    if not options.again:
        runs.record(options, options.folder)
    blocks = {side: runs.read(options.folder, side) for side in "ab"}
    medians = {side: median_ms(blocks[side]) for side in "ab"}
    print(
        f"{len(blocks['a'])} blocks of {len(blocks['a'][0])} requests of each version, p50 {medians['a']:.2f} ms"
        f" and {medians['b']:.2f} ms: {100 * (medians['b'] / medians['a'] - 1):.1f} % more"
    )
    if options.sample:
        write_sample(options.sample, blocks)
        return
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        pairs = Pairs(options.whyslow, blocks, pathlib.Path(folder))
        same = list(pool.map(pairs.same, range(options.pairs)))
        slower = list(pool.map(pairs.slower, range(options.pairs)))
    needed = [requests for requests, _ in slower]
    detected = collections.Counter(found for _, found in slower)
    evaluated = detected[True] + detected[False]
    rates = sum(same) / len(same), detected[True] / max(evaluated, 1)
    print(f"false positives: {sum(same)} of {len(same)}, {rates[0]:.3f} (at most {FALSE_MAX})")
    print(f"requests needed: {min(needed)} to {max(needed)}, median {statistics.median(needed):.0f}")
    print(f"true positives with that number: {detected[True]} of {evaluated}, {rates[1]:.3f} (at least {FOUND_MIN})")
    if detected[None]:
        print(f"not evaluated for lack of blocks: {detected[None]}")
    if rates[0] > FALSE_MAX or rates[1] < FOUND_MIN or detected[None] > len(slower) / 10:
        sys.exit("error: load diff missed a target")


main()
