"""An image board on a disk with slow writes, while a backup flushes its data to the same disk.

Apache with PHP, session files, and posts in SQLite. A page takes milliseconds, or hundreds of
milliseconds if it starts a session during `sync`. The health check has neither session nor posts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from lab import Disk, Lab, UnavailableError, needs
from web import incident
from web.incident import Run
from web.stack import Stack, free_port, user

HERE = Path(__file__).resolve().parent / "board"
MODULES = Path("/usr/lib/apache2/modules")
LOAD = (4, 150)
PAUSE_MS = 20
PAGES = {
    "/board.php": 4,
    "/thread.php?id=3": 3,
    "/post.php": 2,
    "/image.php?id=2": 1,
    "/health.php": 2,
}
MIB = 24
# Duration of a write request, and per MiB: a disk with one head.
WRITE_US, MIB_US = 8_000, 40_000
PAUSE_SECONDS = 0.4
SLOW_NS = 200_000_000
SLOWFS = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]


def apache(stack: Stack, disk: Path, log: Path, port: int) -> Any:
    needs("apache2")
    modules = sorted(MODULES.glob("libphp*.so"))
    if not modules:
        raise UnavailableError("the PHP module of Apache is not installed")
    owner = user("www-data")
    sessions, data = stack.folder("sessions", owner, disk), stack.folder("data", owner, disk)
    pages = stack.copied(owner, *HERE.glob("*.php"))
    places = {"PORT": port, "LAB": stack.lab.folder, "PAGES": pages, "PHP": modules[-1]}
    places |= {"SESSIONS": sessions, "DATA": data, "LOG": log, "MODULES": MODULES}
    text = (HERE / "apache.conf").read_text()
    for name, value in places.items():
        text = text.replace(f"@{name}@", str(value))
    config = stack.lab.folder / "apache.conf"
    config.write_text(text)
    php = {"PHP_INI_SCAN_DIR": str(php_modules()), "BOARD_DATA": str(data), "BOARD_LOG": str(log)}
    done = subprocess.run(
        ["setpriv", f"--reuid={owner.pw_uid}", "--clear-groups", "php", pages / "tables.php", data],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UnavailableError(f"cannot create the board's tables: {done.stderr or done.stdout}")
    return stack.start(["apache2", "-DFOREGROUND", "-f", config], env={**os.environ, **php})


def php_modules() -> Path:
    """The folder where Debian configures the modules of PHP for Apache, such as SQLite."""
    found = sorted(Path("/etc/php").glob("*/apache2/conf.d"))
    if not found or not list(found[-1].glob("*sqlite3.ini")):
        raise UnavailableError("PHP has no SQLite module")
    return found[-1]


class Backup(threading.Thread):
    """Writes megabytes to the disk and flushes them, with dd and sync, again and again."""

    def __init__(self, lab: Lab, disk: Disk, folder: Path) -> None:
        super().__init__()
        self._lab, self._disk, self._target = lab, disk, folder / "backup.tar"
        self._over = threading.Event()
        self.syncs: list[dict[str, Any]] = []

    def run(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            # Truncating the file instead would flush it on close.
            self._target.unlink(missing_ok=True)
            self._lab.run(
                "dd", "if=/dev/zero", f"of={self._target}", "bs=1M", f"count={MIB}", "status=none"
            )
            begin = time.time_ns()
            child = subprocess.Popen(["sync", "-f", self._target])
            child.wait()
            self.syncs.append(
                {"pid": child.pid, "begin_ns": begin, "dur_ns": time.time_ns() - begin}
            )

    def end(self) -> None:
        self._over.set()
        self._disk.set(write_us=0, mib_us=0)
        if self.is_alive():
            self.join()


def work(lab: Lab, run: Run) -> dict[str, Any]:
    needs("dd", "sync", "php")
    disk = lab.disk(160, "serial")
    folder = lab.mount(disk, "ext4", *SLOWFS)
    backup = Backup(lab, disk, folder)

    def load(base: str) -> None:
        disk.set(write_us=WRITE_US, mib_us=MIB_US)
        if not run.healthy:
            backup.start()
        try:
            incident.run_load(lab, run, base, PAGES)
        finally:
            backup.end()

    with Stack(lab) as stack:
        log, port = incident.log_for_servers(lab), free_port()
        server = apache(stack, folder, log, port)
        stack.await_port(server, port, "Apache")
        base = f"http://127.0.0.1:{port}"
        truth = incident.incident(lab, run, lambda: load(base), SLOW_NS)
        shutil.copy(lab.folder / "access.txt", run.folder / "access.txt")
        guilty = {"comm": "sync", "disk": disk.name, "bytes": len(backup.syncs) * MIB << 20}
        places = {"port": port, "pid": server.pid, "sessions": str(folder / "sessions")}
        truth |= {**places, "guilty": guilty, "syncs": backup.syncs}
        return incident.save_truth(run, log, truth)
