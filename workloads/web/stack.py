"""Servers of the incidents: private, on loopback, and unprivileged."""

from __future__ import annotations

import json
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import watchdog
from lab import Lab, UnavailableError, needs, run

HERE = Path(__file__).resolve().parent
# Debian's Python, because Debian's Flask and drivers need it.
PYTHON = "/usr/bin/python3"
START_SECONDS = 30
STOP_SECONDS = 10


def free_port() -> int:
    """A free port on loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def needs_python(*modules: str) -> None:
    for module in modules:
        done = subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False)
        if done.returncode != 0:
            raise UnavailableError(f"{PYTHON} has no module `{module}`")


def user(*names: str) -> pwd.struct_passwd:
    """The first of these users that exists."""
    for name in names:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise UnavailableError(f"there is no user `{names[-1]}`")


class Stack:
    """The servers of an incident, which are stopped at its end."""

    def __init__(self, lab: Lab) -> None:
        needs("unshare", "setpriv", "sh", "mount")
        self.lab = lab
        # Unprivileged programs need access to their files.
        lab.folder.chmod(0o711)
        self._children: list[subprocess.Popen[bytes]] = []

    def folder(self, name: str, owner: pwd.struct_passwd, above: Path | None = None) -> Path:
        folder = (above or self.lab.folder) / name
        folder.mkdir()
        shutil.chown(folder, owner.pw_uid, owner.pw_gid)
        return folder

    def copied(self, owner: pwd.struct_passwd, *files: Path) -> Path:
        """Copies programs to a folder that their user can read."""
        folder = self.folder("app", owner)
        for file in files:
            shutil.copy(file, folder / file.name).chmod(0o644)
        return folder

    def start(
        self,
        command: list[Any],
        owner: pwd.struct_passwd | None = None,
        resolver: str | None = None,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Starts a server in its own IPC and mount namespaces, with its own resolver if given.

        Process ids stay those of the machine, because the truth names threads by them.
        """
        words = ["unshare", "--ipc", "--mount", "sh", "-c", self._before(resolver), "sh"]
        if owner:
            words += ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}"]
            words += ["--clear-groups", "--no-new-privs"]
        name = Path(str(command[0])).name
        with open(self.lab.folder / f"{name}.log", "ab") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **options}
            child = subprocess.Popen(
                [*words, *map(str, command)],
                start_new_session=True,
                **{"cwd": self.lab.folder, **pipes},
            )
        start = watchdog.start_of(child.pid)
        if start is not None:
            self.lab.will_undo("group", child.pid, start)
        self._children.append(child)
        return child

    def _before(self, resolver: str | None) -> str:
        """Setup in the namespaces before the program is executed."""
        if resolver is None:
            return 'exec "$@"'
        folder = self.lab.folder
        # The default timeout of the C library is five seconds.
        (folder / "resolv.conf").write_text(f"nameserver {resolver}\n")
        (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        binds = [
            f"mount --bind {folder}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf")
        ]
        return " && ".join([*binds, 'exec "$@"'])

    def await_port(self, child: subprocess.Popen[bytes], port: int, name: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError as error:
                if child.poll() is not None or time.monotonic() > deadline:
                    raise UnavailableError(f"{name} did not start: {self.log_tails()}") from error
                time.sleep(0.1)
            else:
                return

    def log_tails(self) -> str:
        """The ends of the programs' logs, for error messages."""
        texts = [file.read_text(errors="replace")[-300:] for file in self.lab.folder.glob("*.log")]
        return " | ".join(text.strip() for text in texts if text.strip())

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        """Terminates the programs, latest first; the watchdog kills the rest."""
        for child in reversed(self._children):
            child.terminate()
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


class PostgreSQL:
    """A private cluster in the lab's folder, on a loopback port."""

    def __init__(self, stack: Stack, sql: str) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not programs:
            raise UnavailableError("PostgreSQL is not installed")
        folder, owner = programs[-1].parent, user("postgres", "nobody")
        data, self.port = stack.folder("postgres", owner), free_port()
        user_options = [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        init_options = ["-A", "trust", "-U", "shop", "-E", "UTF8", "--no-locale", "--no-sync"]
        run("setpriv", *user_options, folder / "initdb", "-D", data, *init_options)
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",
            "shared_buffers": "16MB",
            "max_connections": 100,
            "fsync": "off",
        }
        words = [f"-c{name}={value}" for name, value in settings.items()]
        command = [folder / "postgres", "-D", data, "-p", self.port, *words]
        child = stack.start(command, owner)
        stack.await_port(child, self.port, "PostgreSQL")
        self._fill(stack, folder / "psql", sql)

    def _fill(self, stack: Stack, program: Path, sql: str) -> None:
        file = stack.lab.folder / "tables.sql"
        file.write_text(sql)
        place = ["-h", "127.0.0.1", "-p", self.port, "-U", "shop", "-d", "postgres"]
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                run(program, "-q", "-v", "ON_ERROR_STOP=1", *map(str, place), "-f", file)
            except UnavailableError:
                # PostgreSQL listens before it accepts sessions.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return


def rows(file: Path) -> list[dict[str, Any]]:
    """Rows of a JSON lines file; the last line is incomplete if its writer was killed."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
