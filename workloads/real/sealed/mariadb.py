"""MariaDB: a queue for a metadata lock behind LOCK TABLES, and a global read lock of a backup."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, repeat
from faults.truth import Culprit, Thing, Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kit import Served, await_until, disturb
from web.stack import free_port

PACKAGES = {"mariadbd": "mariadb-server", "python:pymysql": "python3-pymysql"}


def session(port: int) -> Any:
    import pymysql

    return pymysql.connect(
        host="127.0.0.1", port=port, user="root", database="shop", autocommit=True
    )


def thread_of(cursor: Any) -> int:
    """The kernel's id of the server's thread for this session."""
    cursor.execute("SELECT tid FROM information_schema.processlist WHERE id = connection_id()")
    return int(cursor.fetchone()[0])


def act_on(plan: WaitingPlan, port: int, sql: str, pause: float = 0.01) -> dict[str, Any]:
    """A victim: runs one statement again and again."""
    cursor = session(port).cursor()
    cursor.execute(sql)
    plan.wait()
    return repeat(plan, lambda: cursor.execute(sql), pause)


class MariaDB(Served):
    """A private server in the lab's folder."""

    packages: ClassVar[dict[str, str]] = PACKAGES

    def start_server(self) -> int:
        data, port = self.lab.folder / "mariadb", free_port()
        words = ["--no-defaults", f"--datadir={data}", "--user=root"]
        run("mariadb-install-db", *words, "--auth-root-authentication-method=normal")
        words += [f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        words += [f"--socket={self.lab.folder}/mariadb.sock", "--skip-log-bin"]
        words += [f"--pid-file={self.lab.folder}/mariadb.pid", "--innodb-buffer-pool-size=32M"]
        words += ["--innodb-flush-log-at-trx-commit=0"]
        self.server = self.serve("MariaDB", ["mariadbd", *words], port)
        socket = f"--socket={self.lab.folder}/mariadb.sock"
        sql = (
            "CREATE DATABASE shop; USE shop; CREATE TABLE items (id INT PRIMARY KEY, stock INT);"
            "INSERT INTO items SELECT seq, 10 FROM seq_1_to_500"
        )
        await_until(lambda: run("mariadb", "--no-defaults", socket, "-e", sql) == "", "MariaDB")
        return port


def report(plan: WaitingPlan, port: int, seconds: float) -> dict[str, Any]:
    """A report that keeps its transaction open while it formats what it has read."""
    connection = session(port)
    cursor = connection.cursor()
    tid = thread_of(cursor)

    def act() -> None:
        cursor.execute("BEGIN")
        cursor.execute("SELECT sum(stock) FROM items")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            sum(range(10_000))
        cursor.execute("COMMIT")

    return {**disturb(plan, act, 0.15), "thread": tid}


def lock_and_unlock(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A migration that waits for the report, and makes all others wait behind it.

    It does nothing else: ALTER TABLE would flush files while it has the lock.
    """
    cursor = session(port).cursor()

    def act() -> None:
        cursor.execute("LOCK TABLES items WRITE")
        cursor.execute("UNLOCK TABLES")

    return disturb(plan, act, 0.04)


class MetadataLock(MariaDB):
    name = "mariadb_metadata_lock"
    about = "a SELECT waits behind LOCK TABLES, which waits for the open transaction of a report"

    def setup(self) -> None:
        port = self.start_server()
        self.victim = self.client("shop", act_on, port, "SELECT stock FROM items WHERE id = 3")
        self.other = self.client("report", report, port, self.plan.pick(0.18, 0.35))
        self.migration = self.client("migration", lock_and_unlock, port)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other, migration = self.other.result(), self.migration.result()
        names = ["lock_futex", "producer_idle"]
        culprit = Culprit("process", "mariadbd", names, self.server.pid, other["thread"])
        culprit.also, culprit.tids = [other["pid"]], [other["thread"]]
        culprit.middlemen = ["migration"]
        culprit.objects = [Thing("any", "items")]
        waits = [
            (max(begin, start), min(end, stop))
            for begin, end in other["spans"]
            for start, stop in migration["spans"]
            if max(begin, start) < min(end, stop)
        ]
        return self.held(self.victim.result(), "recvfrom", waits, culprit)


def back_up(plan: WaitingPlan, port: int, data: Path, target: Path) -> dict[str, Any]:
    """Copies the files of the database under a global read lock."""
    cursor = session(port).cursor()
    tid, tars = thread_of(cursor), []

    def act() -> None:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        words = ["tar", "-C", str(data), "-czf", str(target), "mysql", "shop"]
        tar = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        tars.append(tar.pid)
        tar.wait()
        cursor.execute("UNLOCK TABLES")

    return {**disturb(plan, act, 0.2), "thread": tid, "tars": tars}


class ReadLock(MariaDB):
    name = "mariadb_read_lock"
    about = "an UPDATE waits for the global read lock of a backup, which runs tar meanwhile"

    def setup(self) -> None:
        port = self.start_server()
        sql = "UPDATE items SET stock = stock + 1 WHERE id = 3"
        self.victim = self.client("shop", act_on, port, sql)
        data, target = self.lab.folder / "mariadb", self.lab.folder / "backup.tar.gz"
        self.backup = self.client("backup", back_up, port, data, target)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.backup.result()
        names = ["lock_futex", "child_wait", "cpu_running"]
        culprit = Culprit("process", "mariadbd", names, self.server.pid)
        # The client and its tar are the answer as well as the session that holds the lock.
        culprit.tids, culprit.also = [other["thread"]], [other["pid"], *other["tars"]]
        culprit.near = ["tar", "gzip"]
        culprit.objects = [Thing("any", "backup.tar.gz")]
        return self.held(self.victim.result(), "recvfrom", other["spans"], culprit)
