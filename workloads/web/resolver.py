"""A resolver for which every name has one address, and which loses questions of a crowd.

    resolver.py ADDRESS EVERY MS SEED LOG

It answers one question after another, each in so many milliseconds. A question is lost, as if a
packet were, with the chance WAITING / EVERY, where so many wait; with EVERY 0 never. When it is
asked again it gets its answer. LOG has a line of JSON for each that is lost.
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
    """127.0.0.1 to who asks for an IPv4 address, to others that there is nothing."""
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
        """Takes what has come; waits for it if there is nothing to do."""
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
        told: dict[str, Any] = {"ts_ns": time.time_ns(), "name": name_of(query)}
        told |= {"kind": KINDS.get(kind_of(query)), "port": sender[1], "waiting": waiting}
        self._log.write(json.dumps(told) + "\n")
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
