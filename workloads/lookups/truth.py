"""Converts the shop's logs under each profiler for the tests: truth.py FOLDER

Converts FOLDER/KIND.truth.jsonl to FOLDER/truth.json: the number of requests, and the slow ones.
"""

import json
import sys
from pathlib import Path

SLOW_NS = 1_000_000_000


def main() -> None:
    folder = Path(sys.argv[1])
    place = folder / "truth.json"
    truth = json.loads(place.read_text()) if place.exists() else {}
    for file in sorted(folder.glob("*.truth.jsonl")):
        requests = [json.loads(line) for line in file.read_text().splitlines()]
        slow = [request for request in requests if request["end"] - request["begin"] >= SLOW_NS]
        truth[file.name.split(".")[0]] = {"requests": len(requests), "slow": slow}
        file.unlink()
    place.write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main()
