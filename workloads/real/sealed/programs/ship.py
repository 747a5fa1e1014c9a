"""Reads a log from stdin, as a log shipper does; compresses it thoroughly while FLAG exists.

ship.py FLAG LOG ROUNDS
"""

import ctypes
import lzma
import os
import sys
import time

flag, log, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
ctypes.CDLL(None).prctl(15, b"logship", 0, 0, 0)
part = b""
while True:
    part = os.read(0, 16384)
    if not part:
        break
    if os.path.exists(flag):
        begin = time.monotonic_ns()
        for number in range(rounds):
            lzma.compress(os.urandom(65536) + part + bytes([number]), preset=6)
        with open(log, "a") as out:
            out.write(f"compress {os.getpid()} {begin} {time.monotonic_ns()}\n")
