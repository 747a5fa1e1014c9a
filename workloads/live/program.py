"""Performs a known number of operations that tools trace, and logs them with their times."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

OPENS, MISSING, STATS, PROGRAMS, LOOKUPS, CONNECTIONS = 23, 7, 19, 5, 3, 11


def main(folder: str) -> None:
    truth = []

    def log(kind: str, what: str, begin: float, **more: object) -> None:
        truth.append({"kind": kind, "what": what, "begin": begin, "end": time.time(), **more})

    for number in range(OPENS):
        begin, path = time.time(), os.path.join(folder, f"file with blanks {number}")
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        log("open", path, begin, error=0)
    for number in range(MISSING):
        begin, path = time.time(), os.path.join(folder, f"missing-{number}")
        try:
            os.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            log("open", path, begin, error=error.errno)
    for number in range(STATS):
        begin, path = time.time(), os.path.join(folder, f"file with blanks {number}")
        os.stat(path)
        log("stat", path, begin)
    for number in range(PROGRAMS):
        begin = time.time()
        with subprocess.Popen(["/bin/sleep", f"0.{number + 1}"]) as child:
            pid = child.pid
        log("program", f"/bin/sleep 0.{number + 1}", begin, pid=pid)
    for number in range(LOOKUPS):
        begin, name = time.time(), ["localhost", "ip6-localhost", "no-such-host.invalid"][number]
        with contextlib.suppress(OSError):
            socket.getaddrinfo(name, 80)
        log("lookup", name, begin)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for _ in range(CONNECTIONS):
            begin = time.time()
            with socket.create_connection(("127.0.0.1", port)) as client:
                peer, _ = server.accept()
                with peer:
                    client.sendall(b"x" * 2048)
                    peer.recv(4096)
                    time.sleep(0.02)
            log("connection", str(port), begin)
    json.dump({"pid": os.getpid(), "did": truth}, sys.stdout, indent=0)


main(sys.argv[1])
