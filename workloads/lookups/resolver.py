"""A resolver on loopback that returns one address for every name: resolver.py EVERY LOG

Each EVERY-th query (0: none) gets no answer until it is repeated, as if a packet were
lost.
"""

import socket
import struct
import sys
import time
from pathlib import Path


def answer(query: bytes) -> bytes:
    end = query.index(b"\0", 12) + 5
    head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
    return head + query[12:end] + struct.pack(">HHHIH4B", 0xC00C, 1, 1, 0, 4, 127, 0, 0, 1)


def main() -> None:
    every, log = int(sys.argv[1]), Path(sys.argv[2])
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    seen: set[tuple[int, bytes]] = set()
    count = 0
    with log.open("w", buffering=1) as lost:
        while True:
            query, sender = server.recvfrom(512)
            key = (sender[1], query[:2])
            if key not in seen:
                seen.add(key)
                count += 1
                if every and count % every == 0:
                    lost.write(f"{time.time_ns()}\n")
                    continue
            server.sendto(answer(query), sender)


if __name__ == "__main__":
    main()
