"""A server that pauses before its response and in the middle of it, and logs these times.

    arrivals.py PORT LOG

One thread per connection, HTTP/1.1; the last component of the path is the number of the request. LOG has a
line per request, times in ns of the system clock: number, time after its header was read, time before the
first part of the response was written, time before the second part.
"""

import random
import socket
import sys
import threading
import time


def serve(connection, log, dice):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = b""
    while True:
        while b"\r\n\r\n" not in head:
            more = connection.recv(65536)
            if not more:
                return
            head += more
        read = time.time_ns()
        first, _, head = head.partition(b"\r\n\r\n")
        number = first.split(b" ", 2)[1].rpartition(b"/")[2].decode()
        time.sleep(dice.uniform(0, 0.02))
        started = time.time_ns()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
        time.sleep(dice.uniform(0, 0.02))
        ended = time.time_ns()
        connection.sendall(b"ok")
        log.write(f"{number} {read} {started} {ended}\n")


def main():
    port, path = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    with open(path, "w", buffering=1) as log:
        for seed in range(1 << 40):
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, log, random.Random(seed)), daemon=True).start()


main()
