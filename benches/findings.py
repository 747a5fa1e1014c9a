"""Cost of `whyslow explain` on recordings of growing size."""

import json

# Targets in ms: issue 5 (one call), and ten seconds for a whole recording of ten million events.
MARKS = {"whole": 10_000, "one call": 100}
SIZES = [100_000, 1_000_000, 10_000_000]


def calls(query, recording, count):
    """Ids of calls spread over the recording: the position must not matter."""
    answer = json.loads(query(["syscalls", "top", recording, "-n", "1", "--json"]))
    longest = int(str(answer["tables"][0]["rows"][0]["id"]).rpartition(":")[2])
    return [longest * step // count for step in range(1, count)] + [longest]


def queries(recording, ids):
    """Name → commands without the program, each a single query."""
    return {
        "whole": [["explain", recording, "--json"]],
        "one call": [["explain", recording, "-w", f"op:{one}", "--json"] for one in ids],
        "slow calls": [["explain", recording, "--slow", "read>1ms", "--json"]],
    }


def row(name, size, result, count, smaller):
    """A row of the table; times per query."""
    wall, cpu = (result[key] * 1000 / count for key in ("wall", "cpu"))
    growth = f"{wall / smaller:.1f}×" if smaller else "–"
    mark = MARKS.get(name)
    late = f"{wall / mark:.2f}× the mark" if mark and wall > mark else "–"
    failed = "" if result["ok"] else " (fails)"
    return wall, [f"{size:,}", name + failed, f"{wall:.0f}", f"{cpu:.0f}", f"{result['rss']:.0f}", growth, mark or "–", late]

