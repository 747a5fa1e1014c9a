"""Answers about one recorded incident, and whether they hold."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, what, holds, more=""):
        self.failed += not holds
        print(f"  {'holds' if holds else 'FAILS'}: {what}{': ' if more else ''}{more}", flush=True)

    def skip(self, what, why):
        print(f"  skipped: {what}: {why}", flush=True)


def lines(file):
    """Objects of a file with one a line; the last may be half there."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


class Incident:
    """What was made, what the application logged, and what whyslow answers."""

    def __init__(self, whyslow, folder):
        self.whyslow, self.folder, self.name = whyslow, folder, folder.name
        self.recording = folder / "recording.wsl"
        self.truth = json.loads((folder / "truth.json").read_text())
        self.served = lines(folder / "served.ndjson")
        self.load = [row for row in lines(folder / "load.ndjson") if "seq" in row]

    def about(self):
        slow = sum(page["slow"] for page in self.truth["pages"].values())
        longest = self.truth["total_ns_max"] / 1e6
        return f"{self.truth['requests']} requests, {slow} slow ones, the longest {longest:.0f} ms"

    def slow_served(self):
        """What took long in the application, which does not see who waits to be read."""
        limit = self.truth["slow_ns"]
        return [row for row in self.served if row["end_ns"] - row["begin_ns"] >= limit]

    def asked(self, question, *words):
        """Answer to a question such as ["dns", "log"], with more words after the recording."""
        command = [self.whyslow, *question, self.recording, *words, "--json"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{question} {words} of {self.name}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def rows(self, kind, verb, *words, table=0):
        words = (*words, "-n", "0") if verb == "log" else words
        return self.asked([kind, verb], *words)["tables"][table]["rows"]

    def stories(self, *words):
        return self.explained(*words)["stories"]

    def explained(self, *words):
        return self.asked(["explain"], *words)
