"""Whether `load diff` says that two versions of a web server differ if they do, and only then.

Two versions, the second a tenth slower, take turns in short blocks of load. Turns of the first that follow each
other, one dealt to each side, must not be said to differ; turns of the one and the other must be, with as many
requests as such a look at the first version says are needed.

    python3 benches/eval/diff.py WHYSLOW [--blocks 300] [--pairs 200] [--folder DIR] [--again] [--sample FILE]

What was measured is kept in the folder, and asked again with --again. --sample writes a part of it as the
fixture that the tests replay, and asks nothing.
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
SAMPLE_BLOCKS = 120
BAD = ("worse", "better", "mixed")


def parsed():
    parser = arguments.parser(__doc__, "diff", seconds=0)
    parser.add_argument("--blocks", type=int, default=300, help="turns of each version")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--each", type=int, default=20, help="requests of a thread in a block")
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

    def turns(self, number):
        """The first version's turns by pairs that follow each other, one of each for each side."""
        blocks, dice = self.blocks["a"], random.Random(number)
        sides = [], []
        for place in range(0, len(blocks) - 1, 2):
            first = dice.randrange(2)
            sides[first].append(blocks[place])
            sides[1 - first].append(blocks[place + 1])
        return sides

    def same(self, number):
        """Whether turns of the first version are said to differ."""
        return self.asked(f"same-{number}", *self.turns(number))["facts"]["verdict"] in BAD

    def slower(self, number):
        """Requests that a look asks for, and whether so many find the second version slower; none of too few."""
        look = self.asked(f"look-{number}", *self.turns(10_000 + number))
        needed = next(row["requests_needed"] for row in look["rows"] if row["figure"] == "p50")
        count = max(-(-needed // len(self.blocks["a"][0])), 2)
        turns = range(min(map(len, self.blocks.values())))
        if count > len(turns):
            return needed, None
        turns = random.Random(20_000 + number).sample(turns, count)
        sides = [[self.blocks[side][turn] for turn in turns] for side in "ab"]
        return needed, self.asked(f"slower-{number}", *sides)["facts"]["verdict"] == "worse"


def median_ms(blocks):
    return statistics.median(row["total_ns"] for block in blocks for row in block) / 1e6


def write_sample(path, blocks):
    """Version, turn, and the lengths of its requests in tenths of a ms, in order of begin."""
    lines = []
    for side, all_of in blocks.items():
        for number, block in enumerate(all_of[:SAMPLE_BLOCKS]):
            rows = sorted(block, key=lambda row: row["start_ns"])
            lines.append(" ".join([side, str(number), *(str(round(row["total_ns"] / 1e5)) for row in rows)]))
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
