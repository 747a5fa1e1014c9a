"""Whether `load diff` says that two versions of a web server differ if they do, and only then.

Two versions, the second a tenth slower, take turns in short blocks of load. Blocks of the first, dealt to two
sides, must not be said to differ; blocks of the one and the other must be, with as many requests as a first
look at the first version says are needed.

    python3 benches/eval/diff.py WHYSLOW [--blocks 80] [--pairs 200] [--folder DIR] [--again] [--sample FILE]

What was measured is kept in the folder, and asked again with --again. --sample writes a small part of it as the
fixture that the tests replay.
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

# Share of pairs that are alike and said to differ, at most; and of those that differ and are found, at least.
FALSE_MAX = 0.05
FOUND_MIN = 0.9
# Blocks of each side of a first look.
LOOK = 10
SAMPLE_BLOCKS = 24
SAMPLE_EACH = 100
BAD = ("worse", "better", "mixed")


def parsed():
    parser = arguments.parser(__doc__, "diff", seconds=0)
    parser.add_argument("--blocks", type=int, default=80, help="of each version")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--each", type=int, default=75, help="requests of a thread in a block")
    parser.add_argument("--shift", type=float, default=0.1, help="share by which clients see the second version slower")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sample", type=pathlib.Path)
    return parser.parse_args()


class Pairs:
    """Pairs of runs that are made of blocks, and what is said of them."""

    def __init__(self, whyslow, blocks, folder):
        self.whyslow, self.blocks, self.folder = whyslow, blocks, folder

    def side(self, name, blocks):
        """A run of these blocks, in order of time."""
        path = self.folder / f"{name}.ndjson"
        rows = sorted((row for block in blocks for row in block), key=lambda row: row["start_ns"])
        head = {"whyslow_load": 1, "begin_ns": rows[0]["start_ns"], "host": "", "arguments": []}
        lines = [head, *({**row, "seq": place} for place, row in enumerate(rows))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def asked(self, name, before, after):
        """The answer to `load diff`."""
        paths = [self.side(f"{name}-before", before), self.side(f"{name}-after", after)]
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.folder / name)}
        command = [self.whyslow.resolve(), "load", "diff", *paths, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=cache)
        answer = json.loads(done.stdout)
        for path in paths:
            path.unlink()
        subprocess.run(["rm", "-r", self.folder / name], check=False)
        return answer["tables"][0]

    def same(self, number):
        """Whether two halves of the first version's blocks are said to differ."""
        blocks = dealt(self.blocks["a"], number)
        half = len(blocks) // 2
        table = self.asked(f"same-{number}", blocks[:half], blocks[half:])
        return table["facts"]["verdict"] in BAD

    def slower(self, number):
        """Requests that a first look asks for, and whether so many find the second version slower."""
        look = dealt(self.blocks["a"], 10_000 + number)[: 2 * LOOK]
        first = self.asked(f"look-{number}", look[:LOOK], look[LOOK:])
        needed = next(row["requests_needed"] for row in first["rows"] if row["figure"] == "p50")
        count = -(-needed // len(look[0]))
        if count > min(map(len, self.blocks.values())):
            return needed, None
        count = max(count, 2)
        sides = [dealt(self.blocks[side], 20_000 + number)[:count] for side in "ab"]
        found = self.asked(f"slower-{number}", *sides)
        return needed, found["facts"]["verdict"] == "worse"


def dealt(blocks, seed):
    blocks = list(blocks)
    random.Random(seed).shuffle(blocks)
    return blocks


def median_ms(blocks):
    return statistics.median(row["total_ns"] for block in blocks for row in block) / 1e6


def write_sample(path, blocks):
    """Side, block, and the lengths of its first requests in µs, in order of begin."""
    lines = []
    for side, all_of in blocks.items():
        for number, block in enumerate(all_of[:SAMPLE_BLOCKS]):
            rows = sorted(block, key=lambda row: row["start_ns"])[:SAMPLE_EACH]
            lines.append(" ".join([side, str(number), *(str(row["total_ns"] // 1000) for row in rows)]))
    path.write_text("\n".join(lines) + "\n")


def main():
    asked = parsed()
    if not asked.again:
        runs.record(asked, asked.folder)
    blocks = {side: runs.read(asked.folder, side) for side in "ab"}
    medians = {side: median_ms(blocks[side]) for side in "ab"}
    print(
        f"{len(blocks['a'])} blocks of {len(blocks['a'][0])} requests of each version, p50 {medians['a']:.2f} ms"
        f" and {medians['b']:.2f} ms: {100 * (medians['b'] / medians['a'] - 1):.1f} % more"
    )
    if asked.sample:
        write_sample(asked.sample, blocks)
        return
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        pairs = Pairs(asked.whyslow, blocks, pathlib.Path(folder))
        same = list(pool.map(pairs.same, range(asked.pairs)))
        slower = list(pool.map(pairs.slower, range(asked.pairs)))
    needed = [requests for requests, _ in slower]
    told = collections.Counter(found for _, found in slower)
    rates = sum(same) / len(same), told[True] / max(told[True] + told[False], 1)
    print(f"said to differ though alike: {sum(same)} of {len(same)}, {rates[0]:.3f} (at most {FALSE_MAX})")
    print(f"requests said to be needed: {min(needed)} to {max(needed)}, half of them {statistics.median(needed):.0f}")
    print(f"found with so many: {told[True]} of {told[True] + told[False]}, {rates[1]:.3f} (at least {FOUND_MIN})")
    if told[None]:
        print(f"not asked, as there are too few blocks: {told[None]}")
    if rates[0] > FALSE_MAX or rates[1] < FOUND_MIN or told[None] > len(slower) / 10:
        sys.exit("load diff does not keep what it promises")


main()
