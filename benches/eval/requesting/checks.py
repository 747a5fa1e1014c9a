"""Queries on a recorded incident, and checks of the results."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, what, holds, more=""):
        self.failed += not holds
        print(f"  {'ok' if holds else 'FAILED'}: {what}{': ' if more else ''}{more}", flush=True)

    def skip(self, what, why):
        print(f"  skipped: {what}: {why}", flush=True)


def lines(file):
    """Objects of a JSON lines file; the last line may be incomplete."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


class Incident:
    """The truth of an incident, the application's log, and queries on its recording."""

    def __init__(self, whyslow, folder):
        self.whyslow, self.folder, self.name = whyslow, folder, folder.name
        self.recording = folder / "recording.wsl"
        self.truth = json.loads((folder / "truth.json").read_text())
        self.served = lines(folder / "served.ndjson")
        self.load = [row for row in lines(folder / "load.ndjson") if "seq" in row]

    def summary(self):
        slow = sum(page["slow"] for page in self.truth["pages"].values())
        longest = self.truth["total_ns_max"] / 1e6
        return f"{self.truth['requests']} requests, {slow} slow, longest {longest:.0f} ms"

    def slow_served(self):
        """Requests that were slow in the application; it does not see the time before it reads a request."""
        limit = self.truth["slow_ns"]
        return [row for row in self.served if row["end_ns"] - row["begin_ns"] >= limit]

    def query(self, view, *words):
        """Result of a view such as ["dns", "log"], with more arguments after the recording."""
        command = [self.whyslow, *view, self.recording, *words, "--json"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{view} {words} of {self.name}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def rows(self, kind, verb, *words, table=0):
        words = (*words, "-n", "0") if verb == "log" else words
        return self.query([kind, verb], *words)["tables"][table]["rows"]

    def findings(self, *words):
        return self.explained(*words)["findings"]

    def explained(self, *words):
        return self.query(["explain"], *words)
