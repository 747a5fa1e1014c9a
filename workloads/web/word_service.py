"""A service that counts words: it writes, reads and deletes a thousand files per text.

Gunicorn and Flask. A different thread than the one that responds creates the files, in a folder
that is deleted with the request, on a disk with slow writes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from faults.disks import allow_dirty
from lab import Lab, needs
from web import incident
from web.incident import Run
from web.stack import PYTHON, Stack, free_port, needs_python, rows, user

HERE = Path(__file__).resolve().parent / "words"
LOAD = (4, 4)
PAGES = {"/count?text=3": 3, "/length?text=5": 1, "/health": 2}
WORKERS = 6
WRITE_US = 8_000
DIRTY_BYTES = 1 << 20
SLOW_NS = 500_000_000
SLOWFS = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]


def work(lab: Lab, run: Run) -> dict[str, Any]:
    needs("gunicorn")
    needs_python("flask")
    disk = lab.disk(96)
    mounted = lab.mount(disk, "ext4", *SLOWFS)
    # As on a machine with little memory: writers are throttled at this amount of dirty data.
    allow_dirty(lab, disk, DIRTY_BYTES)
    with Stack(lab) as stack:
        owner, port = user("www-data", "nobody"), free_port()
        log, scratch = incident.log_for_servers(lab), stack.folder("tmp", owner, mounted)
        folder = stack.copied(owner, HERE / "app.py")
        command = [PYTHON, "-m", "gunicorn", "-k", "gthread", "--threads", WORKERS, "--workers", 1]
        command += ["--bind", f"127.0.0.1:{port}", "--chdir", folder, "--timeout", 300]
        command += ["--worker-tmp-dir", "/dev/shm", "app:app"]
        environment = {**os.environ, "LOG": str(log), "SCRATCH": str(scratch)}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        server = stack.start(command, owner, env=environment)
        stack.await_port(server, port, "the service")
        if not run.healthy:
            disk.set(write_us=WRITE_US)
        base = f"http://127.0.0.1:{port}"

        def load() -> None:
            incident.run_load(lab, run, base, PAGES)

        truth = incident.incident(lab, run, load, SLOW_NS)
        disk.set(write_us=0)
        served = rows(log)
        guilty = {"folder": str(scratch), "disk": disk.name, "comm": "counter"}
        guilty |= {name: sum(row[name] for row in served) for name in ("files", "bytes")}
        truth |= {"port": port, "pid": server.pid, "guilty": guilty}
        return incident.save_truth(run, log, truth)
