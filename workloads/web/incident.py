"""One run of an incident: starts servers, then a recorder, then the load."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import watchdog
from lab import Lab, UnavailableError
from web.stack import rows

HERE = Path(__file__).resolve().parent
READY_SECONDS = 30
# Timeout for the import of the recording.
IMPORT_SECONDS = 120
LOAD, SERVED = "load.ndjson", "served.ndjson"


@dataclass
class Run:
    """Options of an incident."""

    # Output folder for requests and the servers' logs.
    folder: Path
    seconds: float = 60
    # Client threads; several values for one load after another.
    threads: list[int] = field(default_factory=list)
    each: int = 10
    # Pause between two requests of a thread.
    pause_ms: int = 0
    seed: int = 1
    # Recording to write, if any, and the program that records.
    recording: Path | None = None
    recorder: str = "whyslow"
    recorder_words: list[str] = field(default_factory=list)
    # Program whose `load` sends the requests; None for client.py.
    load: str | None = None
    keep: bool = False
    # Language of the shop.
    language: str = "python"
    # Run without the fault, for comparison.
    healthy: bool = False


class Recorder:
    """Records the machine; entering waits until the recorder is ready."""

    def __init__(self, lab: Lab, run: Run) -> None:
        self._lab, self._run = lab, run
        self._log = run.folder / "record.log"
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        if self._run.recording is None:
            return
        words = [self._run.recorder, "record", "-o", self._run.recording, "--force"]
        words += ["--for", f"{self._run.seconds + READY_SECONDS:.0f}s", *self._run.recorder_words]
        # Add the load to the recording, to join its requests with the server's.
        words += ["--with", self._run.folder / LOAD]
        with open(self._log, "w") as log:
            child = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
        self._lab.will_undo("process", child.pid, watchdog.start_of(child.pid))
        self._child = child
        deadline = time.monotonic() + READY_SECONDS
        while "recording started" not in self._log.read_text():
            if child.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(f"cannot record: {self._log.read_text().strip()}")
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._child is None:
            return
        self._child.send_signal(signal.SIGINT)
        if self._child.wait(IMPORT_SECONDS) != 0:
            raise RuntimeError(f"the recorder failed: {self._log.read_text().strip()}")


def run_load(lab: Lab, run: Run, base: str, weights: dict[str, float]) -> None:
    """Runs the load to its end."""
    urls, out = lab.folder / "urls.txt", run.folder / LOAD
    urls.write_text("".join(f"{weight} {base}{path}\n" for path, weight in weights.items()))
    threads = ",".join(map(str, run.threads))
    if run.load is None:
        command = [sys.executable, HERE / "client.py", out, threads, run.each]
        command += [run.pause_ms, run.seed, "keep" if run.keep else "new", urls]
    else:
        is_sweep = len(run.threads) > 1
        command = [run.load, "load", "--urls", urls]
        if is_sweep:
            total = max(run.threads) * run.each
            command += ["--sweep", f"threads={threads}", "--total", total]
        else:
            command += ["--threads", threads, "--each", run.each]
        command += ["--keepalive" if run.keep else "--new-conn", "-o", out, "--list", "none"]
        command += ["--pause", f"{run.pause_ms}ms"] if run.pause_ms else []
    lab.run(*map(str, command))


def incident(lab: Lab, run: Run, load: Callable[[], Any], slow_ns: int) -> dict[str, Any]:
    """Records a load; its summary, with the requests that took at least `slow_ns`."""
    run.folder.mkdir(parents=True, exist_ok=True)
    begin = time.time_ns()
    with Recorder(lab, run):
        # The recorder lists open connections before its first event.
        time.sleep(0.5)
        load()
        time.sleep(0.2)
    requests = [row for row in rows(run.folder / LOAD) if "seq" in row]
    return {"load_begin_ns": begin, "slow_ns": slow_ns, **summary(requests, slow_ns)}


def summary(requests: list[dict[str, Any]], slow_ns: int) -> dict[str, Any]:
    """The expected result: counts per page, and of slow requests."""
    pages: dict[str, dict[str, int]] = {}
    for row in requests:
        page = pages.setdefault(row["endpoint"], {"requests": 0, "slow": 0, "errors": 0})
        page["requests"] += 1
        page["slow"] += row["total_ns"] >= slow_ns
        page["errors"] += row["outcome"] != "ok"
    took = sorted(row["total_ns"] for row in requests)
    return {
        "requests": len(requests),
        "pages": pages,
        "total_ns_median": took[len(took) // 2] if took else None,
        "total_ns_max": took[-1] if took else None,
    }


def log_for_servers(lab: Lab) -> Path:
    """Creates a log that an unprivileged server may write, before it starts."""
    log = lab.folder / SERVED
    log.touch()
    log.chmod(0o666)
    return log


def save_truth(run: Run, log: Path, truth: dict[str, Any]) -> dict[str, Any]:
    """Saves the truth and the servers' log with the requests: the lab's folder is temporary."""
    (run.folder / SERVED).write_bytes(log.read_bytes())
    truth = {"served": len(rows(log)), **truth}
    (run.folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n")
    return truth
