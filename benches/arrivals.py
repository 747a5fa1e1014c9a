"""A server that waits before it answers and in the middle of its answer, and logs when it did what.

    arrivals.py PORT LOG

A thread a connection, HTTP/1.1, the path's last part as the number of the request. LOG has, for each, in
nanoseconds of the machine's clock: number, when its head was read, when the answer's first part was about
to be written, when the second was.
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
        begun = time.time_ns()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
        time.sleep(dice.uniform(0, 0.02))
        ended = time.time_ns()
        connection.sendall(b"ok")
        log.write(f"{number} {read} {begun} {ended}\n")


def main():
    port, path = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    with open(path, "w", buffering=1) as log:
        for seed in range(1 << 40):
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, log, random.Random(seed)), daemon=True).start()


main()
