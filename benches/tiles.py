"""Cost of tiles: building them from recordings of growing size, and reading them at every scale."""

import json
import shutil
import subprocess

SIZES = [1_000_000, 10_000_000, 100_000_000]
# Disk space per row for a recording with its tiles, with a margin.
BYTES_OF_ROW = 80
# Targets: ms for a tile of 40 lanes; MiB of private memory while building.
MARK_MS = 50
MARK_MIB = 500
BUILD = ["cargo", "build", "--release", "--locked", "-p", "whyslow-tiles", "--example", "bench"]
HEADER = ["rows", "build s", "MiB", "bytes per interval", "open ms", "worst tile ms (track, level)", "median tile ms", "series ms",
          "heat ms (block, io)", "missed"]


def fits(size, folder):
    return shutil.disk_usage(folder).free > size * BYTES_OF_ROW


def measure(example, recording, folder):
    """The JSON lines that the program prints."""
    run = subprocess.run([example, recording, folder], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def row(size, measured):
    """A row of the table."""
    one = {key: value for line in measured if "track" not in line and "heat" not in line for key, value in line.items()}
    tracks = [line for line in measured if line.get("intervals") and "track" in line]
    worst = max(tracks, key=lambda line: line["worst_ms"])
    heat = {line["heat"]: line["ms"] for line in measured if "heat" in line}
    series = max(line["ms"] for line in measured if "series" in line)
    missed = [f"{MARK_MS} ms"] if worst["worst_ms"] > MARK_MS else []
    missed += [f"{MARK_MIB} MiB"] if one["private_mib"] > MARK_MIB else []
    return [
        f"{size:,}",
        f"{one['build_s']:.1f}",
        one["private_mib"],
        f"{one['bytes_each']:.1f}",
        f"{one['open_ms']:.1f}",
        f"{worst['worst_ms']:.1f} ({worst['track']}, {worst['at_level']})",
        f"{max(line['median_ms'] for line in tracks):.1f}",
        f"{series:.1f}",
        f"{heat['block all']:.1f}, {heat['io all']:.1f}",
        ", ".join(missed) or "–",
    ]
