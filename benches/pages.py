"""Performance of the web pages in a browser without a GPU, on recordings of growing size."""

import json
import os
import subprocess

from tiles import fits

SIZES = [1_000_000, 10_000_000, 100_000_000]
# Targets: ms of a tile, of frames (median, 95 %) and of the first page; MiB of private server memory; kB of the bundle.
TILE_MS, FRAME_MS, FRAME_P95_MS, PAGE_MS, PRIVATE_MIB, BUNDLE_KB = 50, 50, 120, 1000, 500, 150
HEADER = ["rows", "first chart ms", "home ms", "frames", "median ms", "95 % ms", "longest ms", "tiles", "median ms", "99 % ms",
          "worst ms (track, level)", "private MiB", "missed"]


def measure(root, program, recording):
    run = subprocess.run(["node", "bench/measure.mjs", recording], cwd=root / "web", check=True, stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, WHYSLOW=str(program)))
    return json.loads(run.stdout)


def bundle_kb(root):
    """Compressed size of the bundle, as printed by the build."""
    run = subprocess.run(["node", "build.mjs"], cwd=root / "web", check=True, capture_output=True, text=True)
    words = (run.stdout + run.stderr).split()
    return next(int(word) for word in words if word.isdigit()) / 1000


def row(measured):
    """A row of the table."""
    frames, tiles = measured["frames"], measured["tiles"]
    worst = tiles["worst"]
    marks = [
        (worst["ms"], TILE_MS, "tile"),
        (frames["median_ms"], FRAME_MS, "frames"),
        (frames["p95_ms"], FRAME_P95_MS, "frames, 95 %"),
        (measured["pages_ms"]["threads"], PAGE_MS, "first chart"),
        (measured["private_mib"], PRIVATE_MIB, "memory"),
    ]
    missed = [f"{name} {mark}" for value, mark, name in marks if value > mark]
    return [
        f"{measured['rows']:,}",
        f"{measured['pages_ms']['threads']:.0f}",
        f"{measured['pages_ms']['home']:.0f}",
        frames["count"],
        f"{frames['median_ms']:.1f}",
        f"{frames['p95_ms']:.1f}",
        f"{frames['worst_ms']:.0f}",
        tiles["count"],
        f"{tiles['median_ms']:.1f}",
        f"{tiles['p99_ms']:.1f}",
        f"{worst['ms']:.1f} ({worst['track']}, {worst['level']})",
        f"{measured['private_mib']:.0f}",
        ", ".join(missed) or "–",
    ]


__all__ = ["BUNDLE_KB", "HEADER", "SIZES", "bundle_kb", "fits", "measure", "row"]
