"""Row locks that an idle transaction keeps."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from faults.plan import Span
from faults.truth import Culprit, Thing, Truth
from real import http, rows, servers
from real.scenario import Scenario
from web.stack import PostgreSQL

# The holder is idle, it waits for its client, which does something else.
IDLE = ["lock_program", "producer_idle", "timer_sleep", "lock_futex"]
POSTGRES = {"/usr/lib/postgresql/*/bin/initdb": "postgresql", "python:psycopg2": "python3-psycopg2"}


class _Rows(Scenario):
    """The client `batch` keeps a row locked."""

    def start_holder(self, connect: rows.Connect, thread: str) -> None:
        hold_s, gap_s = self.plan.pick(0.15, 0.4), self.plan.pick(0.08, 0.15)
        self.holder = self.client("batch", rows.hold, connect, thread, hold_s, gap_s)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def holds(self, result: dict[str, Any]) -> list[Span]:
        return [(begin, end) for begin, end in result["spans"]]


class PostgresRowLock(_Rows):
    name = "postgres_row_lock"
    about = "an UPDATE waits for a row that another PostgreSQL session locked before it went idle"
    packages: ClassVar[dict[str, str]] = POSTGRES

    def setup(self) -> None:
        self.database = PostgreSQL(self.stack, rows.TABLE)
        connect = partial(rows.postgres, self.database.port)
        self.victim = self.client("order", rows.change, connect, 0.01)
        self.start_holder(connect, "SELECT pg_backend_pid()")

    def culprit(self, result: dict[str, Any]) -> Culprit:
        culprit = Culprit("process", "postgres", IDLE, result["served_by"])
        culprit.also = [self.holder.pid]
        culprit.middlemen = ["postgres", "nginx", "gunicorn*"]
        culprit.objects = [Thing("any", "batch"), Thing("any", "stock")]
        return culprit

    def truth(self, faults: list[Span]) -> Truth:
        result = self.holder.result()
        return self.held(self.victim.result(), "poll", self.holds(result), self.culprit(result))


class ChainToRowLock(PostgresRowLock):
    name = "chain_to_row_lock"
    about = "a page waits behind nginx, gunicorn and PostgreSQL for a row that a batch job locked"
    packages: ClassVar[dict[str, str]] = {
        **POSTGRES,
        "nginx": "nginx-light",
        "gunicorn": "gunicorn",
    }

    def setup(self) -> None:
        self.database = PostgreSQL(self.stack, rows.TABLE)
        words = ["--env", f"DATABASE_PORT={self.database.port}"]
        _, port = servers.gunicorn(self.stack, 2, *words)
        nginx = servers.Nginx(self.stack, servers.proxied(port))
        self.victim = self.client("browser", http.fetch, nginx.port, "/order", 0.01)
        self.start_holder(partial(rows.postgres, self.database.port), "SELECT pg_backend_pid()")

    def truth(self, faults: list[Span]) -> Truth:
        result = self.holder.result()
        return self.held(self.victim.result(), "recvfrom", self.holds(result), self.culprit(result))


class MariaDbRowLock(_Rows):
    name = "mariadb_row_lock"
    about = "an UPDATE waits for a row that another MariaDB connection locked before it went idle"
    packages: ClassVar[dict[str, str]] = {
        "mariadbd": "mariadb-server",
        "python:pymysql": "python3-pymysql",
    }

    def setup(self) -> None:
        self.database = servers.MariaDB(self.stack)
        cursor = servers.until_ready("MariaDB", self.database.connect).cursor()
        cursor.execute("CREATE DATABASE shop")
        for statement in rows.TABLE.split(";")[:2]:
            cursor.execute(statement.replace("stock", "shop.stock"))
        connect = partial(in_shop, self.database)
        self.victim = self.client("order", rows.change, connect, 0.01)
        thread = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()"
        self.start_holder(connect, thread)

    def truth(self, faults: list[Span]) -> Truth:
        result = self.holder.result()
        culprit = Culprit("process", "mariadbd", IDLE, self.database.child.pid)
        culprit.tids = [result["served_by"]]
        culprit.also = [self.holder.pid]
        culprit.middlemen = ["mariadbd"]
        culprit.objects = [Thing("any", "batch"), Thing("any", "stock")]
        return self.held(self.victim.result(), "recvfrom", self.holds(result), culprit)


def in_shop(database: servers.MariaDB) -> Any:
    connection = database.connect()
    connection.select_db("shop")
    return connection
