"""Computes and waits in turn, and writes the time of each: shares.py FOLDER SECONDS."""

import json
import sys
import threading
import time
from pathlib import Path


def compute(until: float) -> None:
    total = 0
    while time.monotonic() < until:
        total += sum(range(200))


def wait(seconds: float) -> None:
    time.sleep(seconds)


def work(end: float, spent: dict[str, float]) -> None:
    while time.monotonic() < end:
        begin = time.monotonic()
        compute(begin + 0.2)
        middle = time.monotonic()
        wait(0.1)
        spent["compute"] += middle - begin
        spent["wait"] += time.monotonic() - middle


def main() -> None:
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    spent = {"compute": 0.0, "wait": 0.0}
    end = time.monotonic() + seconds
    thread = threading.Thread(target=work, args=(end, spent), name="worker")
    thread.start()
    thread.join()
    (folder / "truth.json").write_text(json.dumps(spent) + "\n")


if __name__ == "__main__":
    main()
