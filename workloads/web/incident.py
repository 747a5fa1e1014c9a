"""One run of an incident: servers first, then a recorder, then the load."""

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
# Making a recording of what was recorded may take as long as this.
IMPORT_SECONDS = 120
LOAD, SERVED = "load.ndjson", "served.ndjson"


@dataclass
class Run:
    """What an incident is asked for."""

    # Where requests, and what the servers logged of them, are left.
    folder: Path
    seconds: float = 60
    # Threads that ask; several for one load after another.
    threads: list[int] = field(default_factory=list)
    each: int = 10
    # Between two requests of a thread.
    pause_ms: int = 0
    seed: int = 1
    # What is recorded, if it is, and with which program.
    recording: Path | None = None
    recorder: str = "whyslow"
    recorder_words: list[str] = field(default_factory=list)
    # Program whose `load` asks; none for the client of the workloads.
    load: str | None = None
    keep: bool = False
    # Language of the shop.
    language: str = "python"
    # Without the fault, for comparison.
    healthy: bool = False


class Recorder:
    """Records the machine from when it is ready to when it is left."""

    def __init__(self, lab: Lab, run: Run) -> None:
        self._lab, self._run = lab, run
        self._log = run.folder / "record.log"
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        if self._run.recording is None:
            return
        words = [self._run.recorder, "record", "-o", self._run.recording, "--force"]
        words += ["--for", f"{self._run.seconds + READY_SECONDS:.0f}s", *self._run.recorder_words]
        # What was asked becomes part of the recording: its requests are joined with the server's.
        words += ["--with", self._run.folder / LOAD]
        with open(self._log, "w") as log:
            child = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
        self._lab.will_undo("process", child.pid, watchdog.start_of(child.pid))
        self._child = child
        give_up = time.monotonic() + READY_SECONDS
        while "recording;" not in self._log.read_text():
            if child.poll() is not None or time.monotonic() > give_up:
                raise UnavailableError(f"nothing is recorded: {self._log.read_text().strip()}")
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._child is None:
            return
        self._child.send_signal(signal.SIGINT)
        if self._child.wait(IMPORT_SECONDS) != 0:
            raise RuntimeError(f"the recorder failed: {self._log.read_text().strip()}")


def ask(lab: Lab, run: Run, base: str, weights: dict[str, float]) -> None:
    """The load, for as long as it takes."""
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
    """Records a load; what was asked, and how much of it took so long."""
    run.folder.mkdir(parents=True, exist_ok=True)
    begin = time.time_ns()
    with Recorder(lab, run):
        # What is open when a recording begins is told before its first event.
        time.sleep(0.5)
        load()
        time.sleep(0.2)
    requests = [row for row in rows(run.folder / LOAD) if "seq" in row]
    return {"load_begin_ns": begin, "slow_ns": slow_ns, **summary(requests, slow_ns)}


def summary(requests: list[dict[str, Any]], slow_ns: int) -> dict[str, Any]:
    """What a reader has to find: counts by page, and the slow ones."""
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
    """A file that a server without rights may write, and that is there before it begins."""
    log = lab.folder / SERVED
    log.touch()
    log.chmod(0o666)
    return log


def told(run: Run, log: Path, truth: dict[str, Any]) -> dict[str, Any]:
    """Leaves the truth and the servers' log beside the requests: the lab's folder goes away."""
    (run.folder / SERVED).write_bytes(log.read_bytes())
    truth = {"served": len(rows(log)), **truth}
    (run.folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n")
    return truth
