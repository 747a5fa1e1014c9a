"""A shop whose database connections look up a name each time, and a resolver that loses questions.

Now and then a page takes five seconds more: any page, but the health check, which needs no
database; and the more are asked for at once the more often.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lab import Lab, UnavailableError, needs
from web import incident
from web.incident import Run
from web.stack import PYTHON, PostgreSQL, Stack, free_port, needs_python, rows, user

HERE = Path(__file__).resolve().parent / "shop"
HOST = "db.internal"
# A question is lost with the chance of one in so many for each that waits.
EVERY, MS = 200, 4
TIMEOUT_NS = 5_000_000_000
SLOW_NS = 4_000_000_000
WORKERS = 8
# Threads that ask, and requests of each.
LOAD = (20, 10)
PAGES = {
    "/": 3,
    "/items": 2,
    "/item?id=7": 2,
    "/orders": 1,
    "/customers": 1,
    "/search?q=7": 1,
    "/basket": 1,
    "/health": 4,
}
# Of loopback, but no address at which others answer, and for each run another one.
RESOLVER = f"127.83.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
JAVA_LIBRARY = "/usr/share/java/postgresql.jar"


def python_shop(stack: Stack, log: Path, database: int, port: int) -> Any:
    needs("gunicorn")
    needs_python("flask", "psycopg2")
    owner = user("www-data", "nobody")
    folder = stack.copied(owner, HERE / "app.py")
    command = [PYTHON, "-m", "gunicorn", "-k", "gthread", "--threads", WORKERS, "--workers", 1]
    command += ["--bind", f"127.0.0.1:{port}", "--backlog", 256, "--chdir", folder]
    command += ["--worker-tmp-dir", "/dev/shm", "app:app"]
    environment = {**os.environ, "LOG": str(log), "DATABASE_PORT": str(database)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return stack.start(command, owner, RESOLVER, env=environment)


def java_shop(stack: Stack, log: Path, database: int, port: int) -> Any:
    needs("java", "javac")
    owner = user("www-data", "nobody")
    folder = stack.copied(owner, HERE / "Shop.java")
    stack.lab.run("javac", "-d", folder, folder / "Shop.java")
    # Names are looked up each time, as programs do that have no cache.
    command = ["java", "-Dsun.net.inetaddr.ttl=0", "-Xmx256m"]
    command += ["-cp", f"{folder}:{JAVA_LIBRARY}", "Shop", port, database, WORKERS, log]
    return stack.start(command, owner, RESOLVER)


def go_shop(stack: Stack, log: Path, database: int, port: int) -> Any:
    needs("go")
    owner = user("www-data", "nobody")
    folder = stack.copied(owner, *(HERE / "go").iterdir())
    # Its driver comes from Go's proxy; cached where Go keeps such things.
    variables = ["CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false"]
    stack.lab.run("env", "-C", folder, *variables, "go", "build", "-o", "shop", ".")
    return stack.start([folder / "shop", port, database, WORKERS, log], owner, RESOLVER)


SHOPS = {"python": python_shop, "java": java_shop, "go": go_shop}


def work(lab: Lab, run: Run) -> dict[str, Any]:
    with Stack(lab) as stack:
        lost, log, port = lab.folder / "lost.ndjson", incident.log_for_servers(lab), free_port()
        every = 0 if run.healthy else EVERY
        words = [HERE.parent / "resolver.py", RESOLVER, every, MS, run.seed, lost]
        resolver = stack.start([PYTHON, *words])
        database = PostgreSQL(stack, (HERE / "tables.sql").read_text())
        if resolver.poll() is not None:
            raise UnavailableError(f"the resolver does not start: {stack.said()}")
        shop = SHOPS[run.language](stack, log, database.port, port)
        stack.await_port(shop, port, "the shop")
        base = f"http://127.0.0.1:{port}"
        truth = incident.incident(lab, run, lambda: incident.ask(lab, run, base, PAGES), SLOW_NS)
        guilty = {"resolver": f"{RESOLVER}:53", "host": HOST, "timeout_ns": TIMEOUT_NS}
        places = {"port": port, "database_port": database.port, "pid": shop.pid}
        truth |= {**places, "guilty": guilty, "lost": rows(lost)}
        return incident.told(run, log, truth)
