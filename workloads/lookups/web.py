"""A small shop that looks up the database's name for each order: web.py PORT LOG

Its health check needs no lookup. LOG gets the shop's own measurements, a line of JSON per request.
"""

import json
import queue
import socket
import sys
import threading
import time
from typing import Any, TextIO

WORKERS = 4


def connect_database() -> str:
    found = socket.getaddrinfo("db.internal", 5432, socket.AF_INET, socket.SOCK_STREAM)
    return found[0][4][0]


def price(order: int) -> int:
    end = time.monotonic() + 0.02
    total = order
    while time.monotonic() < end:
        total += sum(range(100))
    return total


def load_order(entry: dict[str, Any]) -> bytes:
    begin = time.time_ns()
    connect_database()
    entry["lookup"] = time.time_ns() - begin
    return str(price(7)).encode()


def handle(connection: socket.socket, log: TextIO) -> None:
    begin = time.time_ns()
    path = connection.recv(4096).split(b" ")[1].decode()
    entry: dict[str, Any] = {"path": path, "tid": threading.get_native_id(), "begin": begin}
    body = b"well" if path == "/health" else load_order(entry)
    head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)
    connection.close()
    entry["end"] = time.time_ns()
    log.write(json.dumps(entry) + "\n")


def work(waiting: "queue.Queue[socket.socket]", log: TextIO) -> None:
    while True:
        handle(waiting.get(), log)


def main() -> None:
    port = int(sys.argv[1])
    waiting: queue.Queue[socket.socket] = queue.Queue()
    with open(sys.argv[2], "w", buffering=1) as log:
        for number in range(WORKERS):
            threading.Thread(
                target=work, args=(waiting, log), name=f"worker-{number}", daemon=True
            ).start()
        server = socket.create_server(("127.0.0.1", port), backlog=64)
        while True:
            connection, _ = server.accept()
            waiting.put(connection)


if __name__ == "__main__":
    main()
