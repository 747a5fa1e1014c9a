"""The load of a small server, until it is killed or its parent ends: TCP requests that read files, a journal
with fdatasync, commands, DNS lookups, temporary files.

    python3 benches/eval/server.py FOLDER REQUESTS_PER_SECOND
"""

import ctypes
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

CLIENTS = 2
PAGES = 16
PR_SET_PDEATHSIG = 1


def main():
    folder, rate = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    end_with(os.getppid())
    for number in range(PAGES):
        (folder / f"page-{number}").write_bytes(os.urandom(2000 * (number + 1)))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    parts = [lambda: serve(listener, folder), lambda: journal(folder), commands, names]
    parts += [lambda: temporary(folder)]
    parts += [lambda: visit(port, rate / CLIENTS)] * CLIENTS
    for part in parts:
        start(part)
    # No part may end.
    os.wait()
    sys.exit("error: a part of the load ended")


def end_with(parent):
    """Ends this process when the parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def start(part):
    parent = os.getpid()
    if os.fork() == 0:
        end_with(parent)
        part()
        os._exit(1)


def each(seconds):
    """Ticks at an interval; skips missed ones."""
    due = time.monotonic()
    while True:
        yield
        due = max(due + seconds, time.monotonic() - 1)
        time.sleep(max(due - time.monotonic(), 0))


def serve(listener, folder):
    with (folder / "access.log").open("ab", buffering=0) as log:
        while True:
            connection, _ = listener.accept()
            with connection:
                page = connection.recv(4096).split()[1].decode().lstrip("/")
                body = (folder / page).read_bytes()
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)
            log.write(f"{page} {len(body)}\n".encode())


def visit(port, rate):
    for _ in each(1 / rate):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f"GET /page-{random.randrange(PAGES)} HTTP/1.0\r\n\r\n".encode())
            while connection.recv(65536):
                pass


def journal(folder):
    with (folder / "journal").open("wb", buffering=0) as file:
        for _ in each(1 / 40):
            file.seek(file.tell() % (1 << 20))
            file.write(b"\n" * 4096)
            os.fdatasync(file.fileno())


def commands():
    for _ in each(1 / 5):
        subprocess.run(["/bin/sh", "-c", "ls / | wc -l"], stdout=subprocess.DEVNULL, check=False)


def names():
    for _ in each(1 / 20):
        socket.getaddrinfo("localhost", 80)


def temporary(folder):
    for _ in each(2):
        path = folder / "temporary"
        with path.open("wb", buffering=0) as file:
            for _ in range(256):
                file.write(bytes(4096))
            os.fsync(file.fileno())
        path.read_bytes()
        path.unlink()


main()
