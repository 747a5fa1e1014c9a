"""A shop that looks up a name for each database connection, and a resolver that loses queries.

Occasionally a page takes five seconds longer: any page except the health check, which needs no
database. The more requests are in flight, the more often it happens.
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
# A query is lost with probability PENDING / EVERY; a reply takes MS milliseconds.
EVERY, MS = 200, 4
TIMEOUT_NS = 5_000_000_000
SLOW_NS = 4_000_000_000
WORKERS = 8
# Client threads, and requests per thread.
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
# A loopback address that is different for each run.
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
    # Disable the JVM's cache, so that each connection looks up the name.
    command = ["java", "-Dsun.net.inetaddr.ttl=0", "-Xmx256m"]
    command += ["-cp", f"{folder}:{JAVA_LIBRARY}", "Shop", port, database, WORKERS, log]
    return stack.start(command, owner, RESOLVER)


def go_shop(stack: Stack, log: Path, database: int, port: int) -> Any:
    needs("go")
    owner = user("www-data", "nobody")
    folder = stack.copied(owner, *(HERE / "go").iterdir())
    # The driver comes from the Go module proxy; cached in Go's module cache.
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
            raise UnavailableError(f"the resolver did not start: {stack.log_tails()}")
        shop = SHOPS[run.language](stack, log, database.port, port)
        stack.await_port(shop, port, "the shop")
        base = f"http://127.0.0.1:{port}"

        def load() -> None:
            incident.run_load(lab, run, base, PAGES)

        truth = incident.incident(lab, run, load, SLOW_NS)
        guilty = {"resolver": f"{RESOLVER}:53", "host": HOST, "timeout_ns": TIMEOUT_NS}
        places = {"port": port, "database_port": database.port, "pid": shop.pid}
        truth |= {**places, "guilty": guilty, "lost": rows(lost)}
        return incident.save_truth(run, log, truth)
