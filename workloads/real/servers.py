"""Private servers of the scenarios, on loopback, in the lab's folder."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from lab import Lab, UnavailableError, run
from web.stack import START_SECONDS, Stack, free_port, user

PROGRAMS = Path(__file__).resolve().parent / "programs"

Child = subprocess.Popen[bytes]


def threads_of(pid: int, pattern: str) -> list[int]:
    """Ids of the threads of a process whose name matches."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda one: int(one.name)):
        try:
            comm = (task / "comm").read_text().strip()
        except OSError:  # ended in between
            continue
        if fnmatch.fnmatchcase(comm, pattern):
            found.append(int(task.name))
    return found


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


class Nginx:
    """nginx with one worker, in front of `upstream` (configuration of a `location /`)."""

    def __init__(self, stack: Stack, location: str, more: str = "") -> None:
        folder = stack.lab.folder / "nginx"
        folder.mkdir()
        self.port = free_port()
        file = folder / "nginx.conf"
        file.write_text(
            f"daemon off; worker_processes 1; pid {folder}/pid; user root;"
            f"error_log {folder}/error.log; events {{ worker_connections 256; }}"
            f"http {{ access_log off; keepalive_requests 1000000; {temporary(folder)} {more}"
            f"server {{ listen 127.0.0.1:{self.port}; location / {{ {location} }} }} }}"
        )
        self.child = stack.start(["nginx", "-c", file, "-p", folder, "-e", folder / "error.log"])
        stack.await_port(self.child, self.port, "nginx")

    @property
    def workers(self) -> list[int]:
        return children_of(self.child.pid)


def temporary(folder: Path) -> str:
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return " ".join(f"{name}_temp_path {folder}/{name};" for name in names)


def proxied(port: int) -> str:
    """A location that keeps its connections to the upstream open."""
    return (
        f"proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1;"
        'proxy_set_header Connection "";'
    )


def gunicorn(stack: Stack, workers: int, *words: Any) -> tuple[Child, int]:
    """gunicorn with the application of programs/shop.py and synchronous workers; its port."""
    port = free_port()
    command = ["gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", workers, "--timeout", 60]
    command += ["--worker-tmp-dir", "/dev/shm", "--chdir", PROGRAMS, *words, "shop:app"]
    child = stack.start(command)
    stack.await_port(child, port, "gunicorn")
    return child, port


def node(stack: Stack, script: str, log: Path) -> tuple[Child, int]:
    port = free_port()
    child = stack.start(["node", PROGRAMS / script, port, log])
    stack.await_port(child, port, "node")
    return child, port


def java(
    stack: Stack, name: str, *words: Any, options: list[str] | None = None
) -> tuple[Child, int]:
    """A program of one Java file, with its port as the first argument."""
    classes = stack.lab.folder / "classes"
    run("javac", "-d", classes, PROGRAMS / f"{name}.java")
    port = free_port()
    # Without this, the JDK's server waits 40 ms for a delayed acknowledgement in each response.
    fixed = ["-Dsun.net.httpserver.nodelay=true", *(options or [])]
    command = ["java", *fixed, "-cp", classes, name, port, *words]
    child = stack.start(command)
    stack.await_port(child, port, name)
    return child, port


def go(stack: Stack, name: str, *words: Any) -> tuple[Child, int]:
    """A Go program, with its port as the first argument. Its packages are compiled once."""
    binary = stack.lab.folder / name
    cache = os.environ.get("WHYSLOW_CACHE", str(Path.home() / ".cache/whyslow-dev"))
    environment = {**os.environ, "GOCACHE": f"{cache}/go-build", "GO111MODULE": "off"}
    done = subprocess.run(
        ["go", "build", "-o", binary, PROGRAMS / f"{name}.go"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UnavailableError(f"cannot compile {name}.go: {done.stderr.strip()[-300:]}")
    port = free_port()
    child = stack.start([binary, port, *words])
    stack.await_port(child, port, name)
    return child, port


class MariaDB:
    """A server with its own data directory and a database `shop`; root has no password."""

    def __init__(self, stack: Stack) -> None:
        owner = user("mysql")
        data = stack.folder("mariadb", owner)
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        run(*command, "--innodb-log-file-size=8M", "--skip-name-resolve")
        self.port = free_port()
        words = ["--no-defaults", f"--datadir={data}", f"--port={self.port}", "--skip-name-resolve"]
        words += ["--bind-address=127.0.0.1", f"--socket={data}/socket", f"--pid-file={data}/pid"]
        words += ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        words += ["--innodb-log-file-size=8M", "--skip-log-bin"]
        self.child = stack.start(["mariadbd", *words], owner)
        stack.await_port(self.child, self.port, "MariaDB")

    def connect(self) -> Any:
        import pymysql

        place = {"host": "127.0.0.1", "port": self.port, "user": "root"}
        return pymysql.connect(**place, autocommit=True)


def redis(stack: Stack, *words: Any, prefix: tuple[Any, ...] = ()) -> tuple[Child, int]:
    port = free_port()
    command = [*prefix, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
    child = stack.start([*command, "--dir", stack.lab.folder, *words])
    stack.await_port(child, port, "Redis")
    return child, port


def memcached(stack: Stack, *words: Any) -> tuple[Child, int]:
    port = free_port()
    command = ["memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, "-u", "memcache", "-t", 2]
    child = stack.start([*command, *words])
    stack.await_port(child, port, "memcached")
    return child, port


class Php:
    """PHP-FPM with a fixed number of children, on a TCP port, and the pages of programs/php."""

    def __init__(self, stack: Stack, children: int) -> None:
        programs = sorted(Path("/usr/sbin").glob("php-fpm*"))
        if not programs:
            raise UnavailableError("PHP-FPM is not installed")
        owner = user("www-data")
        folder = stack.folder("php", owner)
        for page in (PROGRAMS / "php").glob("*.php"):
            shutil.copy(page, folder / page.name).chmod(0o644)
        self.port = free_port()
        file = folder / "fpm.conf"
        file.write_text(
            f"[global]\nerror_log = {folder}/fpm.log\ndaemonize = no\n"
            f"[shop]\nuser = www-data\ngroup = www-data\nlisten = 127.0.0.1:{self.port}\n"
            f"pm = static\npm.max_children = {children}\n"
        )
        self.child = stack.start([programs[-1], "--nodaemonize", "--fpm-config", file])
        stack.await_port(self.child, self.port, "PHP-FPM")
        self.location = (
            f"fastcgi_pass 127.0.0.1:{self.port}; include /etc/nginx/fastcgi_params;"
            f"fastcgi_param SCRIPT_FILENAME {folder}$fastcgi_script_name;"
        )


class Freezer:
    """A control group (v1 or v2) whose processes can be frozen."""

    def __init__(self, lab: Lab) -> None:
        old, new = Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")
        name = f"whyslow-lab-{os.getpid()}"
        self._is_old = (old / "tasks").exists()
        if not self._is_old and not (new / "cgroup.controllers").exists():
            raise UnavailableError("there is no freezer of control groups")
        self.path = (old if self._is_old else new) / name
        lab.will_undo("cgroup", str(self.path))
        self.path.mkdir()
        state = "freezer.state" if self._is_old else "cgroup.freeze"
        self._state = self.path / state
        self._words = ("FROZEN", "THAWED") if self._is_old else ("1", "0")
        # Frozen processes cannot be killed: thaw them first.
        lab.will_undo("setting", str(self._state), self._words[1])

    def add(self, pid: int) -> None:
        (self.path / "cgroup.procs").write_text(str(pid))

    def freeze(self) -> None:
        self._state.write_text(self._words[0])

    def thaw(self) -> None:
        self._state.write_text(self._words[1])


def until_ready(what: str, act: Any) -> Any:
    """Repeats an action until it succeeds: servers listen before they accept sessions."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return act()
        except Exception as error:
            if time.monotonic() > deadline:
                raise UnavailableError(f"{what} is not ready: {error}") from error
            time.sleep(0.2)
