"""Converts the output of the JDK's `jfr` for a recording to a small table.

    python3 printed.py NAME.jfr > NAME.printed.csv
    python3 printed.py --count NAME.jfr > NAME.counts

All lock events, and every thirtieth sample. Times are in nanoseconds since 1970. With --count, the
number of events of each kind (`jfr summary` uses the event names of one chunk for all chunks).
"""

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime

EVENTS = [
    "jdk.JavaMonitorEnter",
    "jdk.ThreadPark",
    "jdk.ExecutionSample",
    "profiler.WallClockSample",
]
EVERY = 30


def time_ns(text: str) -> int:
    whole, _, rest = text.partition(".")
    digits = re.match(r"\d*", rest).group()
    zone = rest[len(digits) :] or "+00:00"
    seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * 1_000_000_000 + int(digits.ljust(9, "0") or 0)


def duration_ns(text: str) -> int:
    hours, minutes, seconds = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", text).groups()
    whole, _, part = (seconds or "0").partition(".")
    total = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(whole)
    return total * 1_000_000_000 + int(part.ljust(9, "0") or 0)


def name(thread: dict | None) -> str:
    return "" if thread is None else thread["javaName"] or thread["osName"] or ""


def leaf(values: dict) -> tuple[str, int]:
    stack = values.get("stackTrace")
    if stack is None:
        return "", 0
    frames = stack["frames"]
    return frames[0]["method"]["name"], len(frames)


def printed(options: list[str]) -> list[dict]:
    command = ["jfr", "print", "--json", *options, sys.argv[-1]]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["recording"][
        "events"
    ]


def main() -> None:
    if sys.argv[1] == "--count":
        counts = Counter(event["type"] for event in printed(["--stack-depth", "1"]))
        print(*(f"{name} {count}" for name, count in sorted(counts.items())), sep="\n")
        return
    events = printed(["--stack-depth", "4096", "--events", ",".join(EVENTS)])
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["event", "start_ns", "dur_ns", "thread", "tid", "function", "frames"])
    samples = 0
    for event in events:
        values = event["values"]
        is_sample = "sampledThread" in values
        samples += is_sample
        if is_sample and samples % EVERY:
            continue
        thread = values["sampledThread" if is_sample else "eventThread"]
        duration = "" if is_sample else duration_ns(values["duration"])
        row = [
            event["type"],
            time_ns(values["startTime"]),
            duration,
            name(thread),
            thread["osThreadId"],
            *leaf(values),
        ]
        out.writerow(row)


main()
