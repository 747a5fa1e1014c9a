"""What `whyslow explain` costs: on recordings of growing size, and beside the import it takes first."""

import json

# ms: issue 5 (one call), and ten seconds for ten million events without a question.
MARKS = {"whole": 10_000, "one call": 100}
SIZES = [100_000, 1_000_000, 10_000_000]


def calls(ask, recording, count):
    """Ids of calls from all of a recording: where one lies must not matter."""
    answer = json.loads(ask(["syscalls", "top", recording, "-n", "1", "--json"]))
    longest = int(str(answer["tables"][0]["rows"][0]["id"]).rpartition(":")[2])
    return [longest * step // count for step in range(1, count)] + [longest]


def questions(recording, ids):
    """Name → commands without the program, one of which is one question."""
    return {
        "whole": [["explain", recording, "--json"]],
        "one call": [["explain", recording, "-w", f"op:{one}", "--json"] for one in ids],
        "slow calls": [["explain", recording, "--slow", "read>1ms", "--json"]],
    }


def row(name, size, result, count, smaller):
    """One line of the table; lengths of one question."""
    wall, cpu = (result[key] * 1000 / count for key in ("wall", "cpu"))
    growth = f"{wall / smaller:.1f}×" if smaller else "–"
    mark = MARKS.get(name)
    late = f"{wall / mark:.2f}× the mark" if mark and wall > mark else "–"
    failed = "" if result["ok"] else " (fails)"
    return wall, [f"{size:,}", name + failed, f"{wall:.0f}", f"{cpu:.0f}", f"{result['rss']:.0f}", growth, mark or "–", late]

