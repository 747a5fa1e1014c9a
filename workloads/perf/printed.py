"""Converts the output of `perf script` to one line per sample."""

import csv
import re
import sys

HEAD = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+([\w-]+(?::\w+)?):\s?(.*)$")
FRAME = re.compile(r"^\s+([0-9a-f]+) (.+)$")
# Without a stack, the address and the function follow the text of an event.
PLACE = re.compile(r"^(.*?)\s+([0-9a-f]{6,}) (\S+)\s*$")


def main() -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["ts_ns", "pid", "tid", "event", "frames", "function", "text"])
    sample = None
    for line in sys.stdin:
        head = HEAD.match(line)
        if head:
            if sample:
                out.writerow(sample)
            pid, tid, seconds, decimals, event, text = head.groups()
            function = ""
            place = PLACE.match(text)
            if place:
                text, _, function = place.groups()
            sample = [
                int(seconds) * 10**9 + int(decimals),
                pid,
                tid,
                event,
                0,
                function,
                text.strip(),
            ]
            continue
        frame = FRAME.match(line)
        if frame and sample:
            if sample[4] == 0:
                sample[5] = frame.group(2)
            sample[4] += 1
    if sample:
        out.writerow(sample)


if __name__ == "__main__":
    main()
