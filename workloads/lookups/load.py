"""Requests orders and health checks from the shop: load.py PORT SECONDS"""

import sys
import threading
import time
import urllib.request

CLIENTS = 3


def request(port: int, path: str, end: float, pause: float) -> None:
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            answer.read()
        time.sleep(pause)


def main() -> None:
    port, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    threads = [
        threading.Thread(target=request, args=(port, "/orders", end, 0.1)) for _ in range(CLIENTS)
    ]
    threads.append(threading.Thread(target=request, args=(port, "/health", end, 0.2)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
