"""A service with a thread per connection, and a thread that computes reports.

    threads.py PORT LOG COUNT

After /on, until /off, the thread `reporter` calls a function in C that keeps the global interpreter
lock, and logs it as BEGIN END in ns of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PR_SET_NAME = 15
is_on = threading.Event()


def report(log: str, count: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"reporter", 0, 0, 0)
    with open(log, "w", buffering=1) as out:
        while True:
            is_on.wait()
            begin = time.monotonic_ns()
            sum(range(count))
            out.write(f"{begin} {time.monotonic_ns()}\n")
            time.sleep(0.08)


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet for head and body: no response waits for a delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/on":
            is_on.set()
        elif self.path == "/off":
            is_on.clear()
        body = b"hello\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    port, log, count = sys.argv[1:]
    threading.Thread(target=report, args=(log, int(count)), daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", int(port)), Page).serve_forever()
