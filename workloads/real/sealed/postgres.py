"""PostgreSQL: locks of a migration, an export and VACUUM FULL, a checkpoint on a slow disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError, run
from real.scenario import Scenario, WaitingPlan
from real.sealed.kit import await_until, children_of, disturb, merged
from web.stack import PostgreSQL, Stack, free_port, user

PACKAGES = {"/usr/lib/postgresql/*/bin/initdb": "postgresql", "python:psycopg2": "python3-psycopg2"}
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, state text);
INSERT INTO orders SELECT n, 'open' FROM generate_series(1, 2000) n;
CREATE TABLE visits (id int, page text, note text);
"""


def session(port: int, name: str) -> Any:
    # Imported here, because listing the scenarios needs no drivers.
    import psycopg2

    connection = psycopg2.connect(
        host="127.0.0.1", port=port, user="shop", dbname="postgres", application_name=name
    )
    connection.autocommit = True
    return connection


def look_up(plan: WaitingPlan, port: int, sql: str, pause: float = 0.01) -> dict[str, Any]:
    """A victim: runs one statement again and again."""
    cursor = session(port, "orders").cursor()
    cursor.execute(sql)
    plan.wait()
    return repeat(plan, lambda: cursor.execute(sql), pause)


def disturb_with(plan: WaitingPlan, port: int, statements: list[str], gap: float) -> dict[str, Any]:
    """A client whose statements are in the way of others; with the process of its backend."""
    connection = session(port, "maintenance")
    cursor = connection.cursor()
    backend = connection.get_backend_pid()

    def act() -> None:
        for sql in statements:
            cursor.execute(sql)

    return {**disturb(plan, act, gap), "backend": backend}


def of_backend(result: dict[str, Any], *mechanisms: str) -> Culprit:
    culprit = Culprit("process", "postgres", list(mechanisms), result["backend"])
    culprit.also = [result["pid"]]
    # Any other backend only waits.
    culprit.middlemen = ["postgres"]
    return culprit


class TableLock(Scenario):
    name = "pg_table_lock"
    about = "a SELECT waits for a table lock of a migration that computes in its transaction"
    packages: ClassVar[dict[str, str]] = PACKAGES

    def setup(self) -> None:
        port = PostgreSQL(self.stack, TABLES).port
        rounds = self.plan.whole(700, 1500) * 1000
        work = f"SELECT sum(sqrt(n)) FROM generate_series(1, {rounds}) n"
        lock = "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"
        words = ["BEGIN", lock, work, "COMMIT"]
        self.victim = self.client("checkout", look_up, port, "SELECT state FROM orders WHERE id=7")
        self.other = self.client("migration", disturb_with, port, words, 0.12)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        culprit = of_backend(other, "cpu_running", "lock_program")
        culprit.objects = [Thing("any", "orders")]
        return self.held(self.victim.result(), "poll", other["spans"], culprit)


class SlowReader:
    """The client's side of COPY: looks at each part for a while, as a slow export does."""

    def __init__(self, pause: float) -> None:
        self._pause, self._parts = pause, 0

    def write(self, part: str) -> int:
        self._parts += 1
        if self._parts % 1000 == 0:
            until = time.monotonic() + self._pause
            while time.monotonic() < until:
                sum(range(10_000))
        return len(part)


def export(plan: WaitingPlan, port: int, rows: int, pause: float) -> dict[str, Any]:
    """Reads a large result slowly, in a transaction that has locked a table."""
    connection = session(port, "export")
    cursor = connection.cursor()
    held = []

    def act() -> None:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE orders IN EXCLUSIVE MODE")
        begin = time.monotonic_ns()
        wide = f"SELECT n, repeat('x', 200) FROM generate_series(1, {rows}) n"
        cursor.copy_expert(f"COPY ({wide}) TO STDOUT", SlowReader(pause))
        held.append((begin, time.monotonic_ns()))
        cursor.execute("COMMIT")

    backend = connection.get_backend_pid()
    return {**disturb(plan, act, 0.15), "held": held, "backend": backend}


class StalledExport(Scenario):
    name = "pg_stalled_export"
    about = "an UPDATE waits for a lock of a backend that waits for its own client to read"
    packages: ClassVar[dict[str, str]] = PACKAGES

    def setup(self) -> None:
        port = PostgreSQL(self.stack, TABLES).port
        rows, pause = self.plan.whole(18, 30) * 1000, self.plan.pick(0.008, 0.014)
        sql = "UPDATE orders SET state = 'paid' WHERE id = 7"
        self.victim = self.client("checkout", look_up, port, sql)
        self.other = self.client("export", export, port, rows, pause)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        culprit = Culprit("process", "export", ["cpu_running", "send_delayed"], other["pid"])
        # The backend that holds the lock is on the way.
        culprit.also, culprit.middlemen = [other["backend"]], ["postgres"]
        culprit.objects = [Thing("any", "orders"), Thing("any", "export")]
        return self.held(self.victim.result(), "poll", other["held"], culprit)


class VacuumFull(Scenario):
    name = "pg_vacuum_full"
    about = "an INSERT waits while VACUUM FULL rewrites the table"
    packages: ClassVar[dict[str, str]] = PACKAGES

    def setup(self) -> None:
        port = PostgreSQL(self.stack, TABLES).port
        rows = self.plan.whole(350, 700) * 1000
        fill = "INSERT INTO visits SELECT n, '/page', repeat('x', 60) FROM generate_series(1,{}) n"
        session(port, "fill").cursor().execute(fill.format(rows))
        sql = "INSERT INTO visits VALUES (1, '/page', 'x')"
        self.victim = self.client("tracker", look_up, port, sql)
        self.other = self.client("dba", disturb_with, port, ["VACUUM FULL visits"], 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        culprit = of_backend(other, "cpu_running", "block_service")
        culprit.objects = [Thing("any", "visits")]
        return self.held(self.victim.result(), "poll", other["spans"], culprit)


class SlowCluster:
    """A cluster that writes to a slow disk and flushes its log."""

    def __init__(self, stack: Stack, disk: Path) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        folder, owner = programs[-1].parent, user("postgres")
        disk.chmod(0o755)
        disk.parent.chmod(0o711)
        data, self.port = stack.folder("cluster", owner, disk), free_port()
        as_owner = [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        options = ["-A", "trust", "-U", "shop", "--no-locale", "--no-sync", "--wal-segsize=4"]
        run("setpriv", *as_owner, folder / "initdb", "-D", data, *options)
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",
            "shared_buffers": "64MB",
            "full_page_writes": "off",
            "autovacuum": "off",
            "checkpoint_timeout": "1h",
            "max_wal_size": "200MB",
        }
        words = [f"-c{name}={value}" for name, value in settings.items()]
        command = [folder / "postgres", "-D", data, "-p", self.port, *words]
        self.server = stack.start(command, owner)
        stack.await_port(self.server, self.port, "PostgreSQL")

    def checkpointer(self) -> int:
        for pid, words in children_of(self.server.pid):
            if "checkpointer" in words:
                return pid
        raise UnavailableError("PostgreSQL has no checkpointer")


def is_ready(port: int) -> bool:
    """PostgreSQL listens before it accepts sessions."""
    import psycopg2

    try:
        session(port, "fill").close()
    except psycopg2.OperationalError:
        return False
    return True


def fill(port: int, rows: int) -> None:
    await_until(lambda: is_ready(port), "PostgreSQL")
    cursor = session(port, "fill").cursor()
    cursor.execute("CREATE TABLE orders (id int PRIMARY KEY, state text)")
    cursor.execute("INSERT INTO orders VALUES (7, 'open')")
    cursor.execute("CREATE TABLE visits (id int, note text) WITH (fillfactor=45)")
    cursor.execute(
        f"INSERT INTO visits SELECT n, repeat('x', 500) FROM generate_series(1, {rows}) n"
    )
    cursor.execute("CHECKPOINT")


def commit(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The victim: small transactions, each of which flushes the log."""
    cursor = session(port, "payments").cursor()
    plan.wait()
    return repeat(plan, lambda: cursor.execute("UPDATE orders SET state='paid' WHERE id=7"), 0.02)


def checkpoint(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """Makes many pages dirty in each window, without a flush of the log, and checkpoints."""
    connection = session(port, "loader")
    cursor = connection.cursor()
    cursor.execute("SET synchronous_commit = off")
    plan.wait()
    spans = []
    for begin, end in plan.windows:
        while time.monotonic_ns() < begin:
            time.sleep(0.005)
        while time.monotonic_ns() < end - 300_000_000:
            cursor.execute("UPDATE visits SET id = id + 1")
            start = time.monotonic_ns()
            cursor.execute("CHECKPOINT")
            spans.append((start, time.monotonic_ns()))
    return {**myself(), "spans": spans, "backend": connection.get_backend_pid()}


class Checkpoint(Scenario):
    name = "pg_checkpoint"
    about = "a COMMIT waits while the checkpointer flushes data to the same slow disk"
    packages: ClassVar[dict[str, str]] = PACKAGES
    on = (2.0, 2.6)
    rounds = 3

    def setup(self) -> None:
        self.disk = self.lab.disk(400, "serial")
        options = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]
        folder = self.lab.mount(self.disk, "ext4", *options)
        cluster = SlowCluster(self.stack, folder)

        fill(cluster.port, self.plan.whole(6000, 9000))
        self.writer = cluster.checkpointer()
        self.disk.set(write_us=300, mib_us=self.plan.whole(12, 22) * 1000)
        self.victim = self.client("payments", commit, cluster.port)
        self.other = self.client("dba", checkpoint, cluster.port)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        # The plan is over: what is left need not take its time.
        self.disk.set(write_us=0, mib_us=0)
        other = self.other.result()
        result = self.victim.result()
        names = ["journal_wait", "block_queue", "sync_storm", "writeback_wait"]
        culprit = Culprit("process", "postgres", names, self.writer)
        culprit.also, culprit.middlemen = [other["pid"], other["backend"]], ["postgres"]
        culprit.near = ["jbd2/*", "kworker/*", self.disk.name]
        culprit.objects = [Thing("device", self.disk.name)]
        return self.slowed(result, "poll", merged(other["spans"]), culprit)
