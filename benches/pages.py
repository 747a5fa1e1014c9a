"""What the pages cost: in a browser without a graphics card, on recordings of growing size."""

import json
import os
import subprocess

from tiles import fits

SIZES = [1_000_000, 10_000_000, 100_000_000]
# ms of a tile, of frames (median, 95 %), and of the first page; MiB of the server's own memory; kB of the bundle.
TILE_MS, FRAME_MS, FRAME_P95_MS, PAGE_MS, PRIVATE_MIB, BUNDLE_KB = 50, 50, 120, 1000, 500, 150
HEADER = ["rows", "first chart ms", "home ms", "frames", "median ms", "95 % ms", "longest ms", "tiles", "median ms", "99 % ms",
          "worst ms (track, level)", "private MiB", "missed"]


def measure(root, program, recording):
    run = subprocess.run(["node", "bench/measure.mjs", recording], cwd=root / "web", check=True, stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, WHYSLOW=str(program)))
    return json.loads(run.stdout)


def bundle_kb(root):
    """What a browser loads, compressed, as the build prints it."""
    run = subprocess.run(["node", "build.mjs"], cwd=root / "web", check=True, capture_output=True, text=True)
    words = (run.stdout + run.stderr).split()
    return next(int(word) for word in words if word.isdigit()) / 1000


def row(told):
    """One line of the table."""
    frames, tiles = told["frames"], told["tiles"]
    worst = tiles["worst"]
    marks = [
        (worst["ms"], TILE_MS, "tile"),
        (frames["median_ms"], FRAME_MS, "frames"),
        (frames["p95_ms"], FRAME_P95_MS, "frames, 95 %"),
        (told["pages_ms"]["threads"], PAGE_MS, "first chart"),
        (told["private_mib"], PRIVATE_MIB, "memory"),
    ]
    missed = [f"{name} {mark}" for value, mark, name in marks if value > mark]
    return [
        f"{told['rows']:,}",
        f"{told['pages_ms']['threads']:.0f}",
        f"{told['pages_ms']['home']:.0f}",
        frames["count"],
        f"{frames['median_ms']:.1f}",
        f"{frames['p95_ms']:.1f}",
        f"{frames['worst_ms']:.0f}",
        tiles["count"],
        f"{tiles['median_ms']:.1f}",
        f"{tiles['p99_ms']:.1f}",
        f"{worst['ms']:.1f} ({worst['track']}, {worst['level']})",
        f"{told['private_mib']:.0f}",
        ", ".join(missed) or "–",
    ]


__all__ = ["BUNDLE_KB", "HEADER", "SIZES", "bundle_kb", "fits", "measure", "row"]
