"""More loads without a fault: programs that are busy with what they are meant to do."""

from __future__ import annotations

import socket
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Truth
from real import http, rows, servers
from real.scenario import WaitingPlan
from real.tuned.databases import in_shop
from real.tuned.nulls import Null

PROGRAM = """#include <stdio.h>
int main(void) {{
    int sum = 0;
    for (int i = 0; i < {number}; i++) sum += i % 7;
    printf("%d\\n", sum);
    return 0;
}}
"""


class NullJavaShop(Null):
    name = "null_java_shop"
    about = "a Java server with more threads than needed serves short pages and reports that wait"
    packages: ClassVar[dict[str, str]] = {
        "java": "openjdk-17-jdk-headless",
        "javac": "openjdk-17-jdk-headless",
    }

    def setup(self) -> None:
        log = self.lab.folder / "log"
        _, port = servers.java(self.stack, "Shop", 8, log, "none", 0)
        self.other = self.client("report", http.press, port, "/report?ms=40", 0.1, 2)
        self.victim = self.client("browser", http.fetch, port, "/", 0.008)

    def truth(self, faults: list[Span]) -> Truth:
        self.other.result()
        return self.steady(self.victim.result(), "recvfrom")


def select(plan: WaitingPlan, connect: rows.Connect) -> dict[str, Any]:
    """Statements whose cost differs by a factor of twenty, some of which write."""
    cursor = connect().cursor()
    plan.wait()
    spans = []
    while not plan.is_over():
        begin = time.monotonic_ns()
        if plan.whole(1, 4) == 1:
            cursor.execute("UPDATE stock SET count = count + 1 WHERE id = %s", (plan.whole(1, 5),))
        else:
            cursor.execute(f"SELECT BENCHMARK({plan.whole(500, 10000)}, SHA2('a', 256))")
            cursor.fetchall()
        spans.append((begin, time.monotonic_ns()))
        time.sleep(plan.pick(0.005, 0.06))
    return {**myself(), "spans": spans}


class NullStatements(Null):
    name = "null_statements"
    about = "MariaDB statements of different sizes; two clients, and CPUs enough for both"
    packages: ClassVar[dict[str, str]] = {
        "mariadbd": "mariadb-server",
        "python:pymysql": "python3-pymysql",
    }

    def setup(self) -> None:
        database = servers.MariaDB(self.stack)
        cursor = servers.until_ready("MariaDB", database.connect).cursor()
        cursor.execute("CREATE DATABASE shop")
        for statement in rows.TABLE.split(";")[:2]:
            cursor.execute(statement.replace("stock", "shop.stock"))
        connect = partial(in_shop, database)
        self.other = self.client("report", select, connect)
        self.victim = self.client("shop", select, connect)

    def truth(self, faults: list[Span]) -> Truth:
        self.other.result()
        return self.steady(self.victim.result(), "recvfrom")


def build(plan: WaitingPlan, folder: Path) -> dict[str, Any]:
    """A script that compiles small programs one after another, and runs each."""
    plan.wait()
    number = 0

    def once() -> None:
        nonlocal number
        number += 1
        source = folder / f"step{number}.c"
        source.write_text(PROGRAM.format(number=number * 1000))
        binary = source.with_suffix("")
        subprocess.run(["cc", "-O1", "-o", binary, source], check=True)
        subprocess.run([binary], check=True, stdout=subprocess.DEVNULL)

    return repeat(plan, once, 0.05)


class NullBuild(Null):
    name = "null_build"
    about = "a script compiles small programs and runs them, one after another"
    packages: ClassVar[dict[str, str]] = {"cc": "gcc"}

    def setup(self) -> None:
        folder = self.lab.folder / "build"
        folder.mkdir()
        self.victim = self.client("build", build, folder)

    def truth(self, faults: list[Span]) -> Truth:
        return self.steady(self.victim.result(), "wait4")


SCRIPT = """#!/bin/sh
# Makes a report: pipelines, temporary files, and a pause as long as the argument.
cd "$(dirname "$0")" || exit 1
seq 1 20000 | awk '{ print $1 % 977, $1 }' >rows.txt
sort -n rows.txt | uniq -c | tail -n 5 >top.txt
grep -c 7 rows.txt >count.txt
tar -cf - rows.txt top.txt count.txt | gzip >report.tar.gz
cp report.tar.gz last.tar.gz
rm -f rows.txt top.txt count.txt
sleep "$1"
"""


def report(plan: WaitingPlan, script: Path) -> dict[str, Any]:
    plan.wait()

    def once() -> None:
        subprocess.run(["sh", script, f"{plan.pick(0.02, 0.2):.3f}"], check=True)

    return repeat(plan, once, 0.02)


class NullReportScript(Null):
    name = "null_report_script"
    about = "a shell script makes reports with pipelines and short programs"
    packages: ClassVar[dict[str, str]] = {"gzip": "gzip", "awk": "mawk"}

    def setup(self) -> None:
        script = self.lab.folder / "report.sh"
        script.write_text(SCRIPT)
        self.victim = self.client("cron", report, script)

    def truth(self, faults: list[Span]) -> Truth:
        return self.steady(self.victim.result(), "wait4")


def send_slowly(plan: WaitingPlan, port: int, pause: float) -> dict[str, Any]:
    """Uploads in pieces, as fast as the line of a phone allows."""
    plan.wait()

    def once() -> None:
        with socket.create_connection(("127.0.0.1", port), http.TIMEOUT_SECONDS) as line:
            head = "POST /photo HTTP/1.1\r\nHost: shop\r\nContent-Length: 32768\r\n"
            line.sendall(f"{head}Connection: close\r\n\r\n".encode())
            for _ in range(8):
                line.sendall(b"x" * 4096)
                time.sleep(pause)
            while line.recv(4096):
                pass

    return repeat(plan, once, 0.05)


class NullUploads(Null):
    name = "null_uploads"
    about = "phones upload photos slowly to a Node server, which other clients do not notice"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def setup(self) -> None:
        _, port = servers.node(self.stack, "photos.js", self.lab.folder / "log")
        pause = self.plan.pick(0.02, 0.05)
        self.phones = [self.client(f"phone{n}", send_slowly, port, pause) for n in range(2)]
        self.victim = self.client("browser", http.fetch_anew, port, "/", 0.02)

    def truth(self, faults: list[Span]) -> Truth:
        for phone in self.phones:
            phone.result()
        return self.steady(self.victim.result(), "recvfrom")
