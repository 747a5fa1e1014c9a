"""A resolver that returns one address for every name, and loses queries under load.

    resolver.py ADDRESS EVERY MS SEED LOG

It answers one query after another, each in MS milliseconds. A query is lost, like a dropped packet,
with probability PENDING / EVERY, where PENDING is the number of pending queries; with EVERY 0
never. A repeated query is answered. LOG has a line of JSON for each lost query.
"""

from __future__ import annotations

import json
import random
import select
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

KINDS = {1: "A", 28: "AAAA"}


def name_of(query: bytes) -> str:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels)


def kind_of(query: bytes) -> int:
    end = query.index(b"\0", 12)
    return int(struct.unpack_from(">H", query, end + 1)[0])


def answer(query: bytes) -> bytes:
    """Returns 127.0.0.1 for IPv4 queries, and an empty answer for others."""
    end = query.index(b"\0", 12) + 5
    count = int(kind_of(query) == 1)
    head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, count, 0, 0)
    record = struct.pack(">HHHIH4B", 0xC00C, 1, 1, 0, 4, 127, 0, 0, 1)
    return head + query[12:end] + record * count


class Resolver:
    def __init__(self, address: str, every: int, seed: int, log: Path) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.every = every
        self._dice = random.Random(seed)
        self._log = log.open("w", buffering=1)
        self._seen: set[tuple[int, bytes]] = set()
        self.waiting: deque[tuple[bytes, tuple[str, int]]] = deque()

    def receive(self) -> None:
        """Receives pending queries; waits for one if there are none."""
        while select.select([self.socket], [], [], 0 if self.waiting else None)[0]:
            query, sender = self.socket.recvfrom(512)
            if not self.is_lost(query, sender):
                self.waiting.append((query, sender))

    def is_lost(self, query: bytes, sender: tuple[str, int]) -> bool:
        key = (sender[1], query[:2])
        if key in self._seen or not self.every:
            return False
        self._seen.add(key)
        waiting = len(self.waiting) + 1
        if self._dice.random() >= waiting / self.every:
            return False
        entry: dict[str, Any] = {"ts_ns": time.time_ns(), "name": name_of(query)}
        entry |= {"kind": KINDS.get(kind_of(query)), "port": sender[1], "waiting": waiting}
        self._log.write(json.dumps(entry) + "\n")
        return True


def main() -> None:
    address, every, ms, seed, log = sys.argv[1:]
    resolver = Resolver(address, int(every), int(seed), Path(log))
    while True:
        resolver.receive()
        time.sleep(float(ms) / 1000)
        query, sender = resolver.waiting.popleft()
        resolver.socket.sendto(answer(query), sender)


if __name__ == "__main__":
    main()
