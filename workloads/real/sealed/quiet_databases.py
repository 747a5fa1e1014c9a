"""Databases without a fault, with short and long statements, and sessions that wait for news."""

from __future__ import annotations

import random
import select
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import SECOND, Span, myself, repeat
from faults.truth import Truth
from lab import UnavailableError
from real.scenario import WaitingPlan
from real.sealed.kit import Served, dial
from real.sealed.quiet_services import Quiet
from real.sealed.stores import Redis
from web.stack import PostgreSQL

TABLES = """
CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance int);
INSERT INTO accounts SELECT n, n % 50, 100 FROM generate_series(1, 200000) n;
CREATE TABLE history (account int, at timestamptz);
ANALYZE;
"""
# Sessions have accounts of their own.
TRANSACTIONS = """
\\set id :base + random(1, 20000)
\\set last :id + random(1, 50) * 1500
\\set kind random(1, 10)
\\if :kind <= 5
SELECT balance FROM accounts WHERE id = :id;
\\elif :kind <= 8
BEGIN;
UPDATE accounts SET balance = balance + 1 WHERE id = :id;
INSERT INTO history VALUES (:id, now());
COMMIT;
\\else
SELECT branch, sum(balance) FROM accounts WHERE id BETWEEN :id AND :last GROUP BY branch;
\\endif
"""


class PgBench(Served):
    name = "null_pgbench_mix"
    about = "two pgbench sessions of short and longer transactions, and a listener without news"
    packages: ClassVar[dict[str, str]] = {
        "/usr/lib/postgresql/*/bin/pgbench": "postgresql",
        "python:psycopg2": "python3-psycopg2",
    }
    is_null = True

    def setup(self) -> None:
        self.port = PostgreSQL(self.stack, TABLES).port
        self.script = self.log("transactions.sql")
        self.script.write_text(TRANSACTIONS)
        self.listener = self.client("listener", listen, self.port)

    def load(self) -> None:
        program = max(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
        seconds = (self.plan.until - time.monotonic_ns()) // SECOND
        words: list[Any] = [program, "-n", "-f", self.script, "-T", seconds, "-l"]
        words += ["-h", "127.0.0.1", "-p", self.port, "-U", "shop"]
        self.benches = []
        for number in range(2):
            own = [f"--log-prefix={self.lab.folder}/bench", f"--rate={self.plan.whole(25, 45)}"]
            own += [f"--random-seed={self.plan.seed + number}", "-D", f"base={number * 100000}"]
            self.benches.append(self.stack.start([*words, *own, "postgres"]))

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        truth = Truth(self.plan, [], [])
        for bench in self.benches:
            if bench.wait(10) != 0:
                raise UnavailableError(f"pgbench failed: {self.stack.log_tails()}")
            victim = {"pid": bench.pid, "tid": bench.pid, "comm": "pgbench"}
            for line in self.log(f"bench.{bench.pid}").read_text().splitlines():
                # Client, number, duration, script, time in s and µs, and how late it started.
                _, _, took, _, seconds, us, late = map(int, line.split())
                end = seconds * SECOND + us * 1000 - self.plan.offset
                truth.add(victim, "ppoll", (end - (took - late) * 1000, end), [])
        self.listener.result()
        return truth


def listen(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """Waits for notifications that do not come."""
    import psycopg2

    session = psycopg2.connect(host="127.0.0.1", port=port, user="shop", dbname="postgres")
    session.autocommit = True
    session.cursor().execute("LISTEN news")
    plan.wait()
    while not plan.is_over():
        select.select([session], [], [], 1.5)
        session.poll()
    return myself()


class RedisClient:
    """Commands of Redis, with replies of any kind."""

    def __init__(self, port: int) -> None:
        connection = dial(port)
        connection.settimeout(None)
        self._socket, self._buffer = connection, b""

    def call(self, *words: Any) -> Any:
        parts = [str(word).encode() for word in words]
        text = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self._socket.sendall(b"*%d\r\n%s" % (len(parts), text))
        return self.reply()

    def reply(self) -> Any:
        line = self._take(self._until_end())[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self._take(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def _until_end(self) -> int:
        while (at := self._buffer.find(b"\r\n")) < 0:
            self._fill()
        return at + 2

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        part, self._buffer = self._buffer[:size], self._buffer[size:]
        return part

    def _fill(self) -> None:
        part = self._socket.recv(65536)
        if not part:
            raise RuntimeError("Redis closed the connection")
        self._buffer += part


class RedisStreams(Quiet, Redis):
    name = "null_redis_streams"
    about = "Redis serves a dashboard, workers that block on a stream, and subscribers"

    def setup(self) -> None:
        port = self.start_server()
        redis = RedisClient(port)
        for score in range(2000):
            redis.call("ZADD", "ranking", score * 7919 % 10007, f"player {score}")
        redis.call("XGROUP", "CREATE", "orders", "workers", "$", "MKSTREAM")
        self.clients = [
            self.client("dashboard", read_ranking, port, self.plan.seed),
            *[self.client("worker", take_orders, port, number) for number in range(2)],
            self.client("subscriber", subscribe, port),
            self.client("shop", add_orders, port, self.plan.seed + 1),
        ]


def read_ranking(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    redis, dice = RedisClient(port), random.Random(seed)
    plan.wait()

    def once() -> None:
        redis.call("ZRANGE", "ranking", 0, dice.choice([5, 5, 50, 300, 1200]), "WITHSCORES")

    return repeat(plan, once, 0.03)


def take_orders(plan: WaitingPlan, port: int, number: int) -> dict[str, Any]:
    redis = RedisClient(port)
    words = ["XREADGROUP", "GROUP", "workers", number, "COUNT", 1, "BLOCK", 700]
    plan.wait()
    return repeat(plan, lambda: redis.call(*words, "STREAMS", "orders", ">"), 0.002)


def subscribe(plan: WaitingPlan, port: int) -> dict[str, Any]:
    redis = RedisClient(port)
    redis.call("SUBSCRIBE", "news")
    while redis.reply()[2] != b"end":
        pass
    return myself()


def add_orders(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    redis, dice = RedisClient(port), random.Random(seed)
    plan.wait()

    def once() -> None:
        redis.call("XADD", "orders", "*", "item", dice.randint(1, 999))
        if dice.random() < 0.3:
            redis.call("PUBLISH", "news", "order")
        time.sleep(dice.expovariate(9))

    while not plan.is_over():
        once()
    redis.call("PUBLISH", "news", "end")
    return myself()
