"""A page that takes about 20 ms: a wait, as for a database, and CPU work. TIMES is a factor on its duration.

    TIMES=1.1 python3 -m gunicorn --worker-class gthread --threads 8 app:application
"""

import hashlib
import math
import os
import random
import time

TIMES = float(os.environ.get("TIMES", "1"))
WAIT_S = 0.020
SPREAD = 0.3
ROUNDS = 1000


def application(_environ, start_response):
    begin = time.perf_counter()
    time.sleep(WAIT_S * math.exp(SPREAD * random.gauss(0, 1)))
    hashlib.pbkdf2_hmac("sha256", b"page", b"salt", ROUNDS)
    # The factor applies to the actual time, including delays by the machine.
    time.sleep((TIMES - 1) * (time.perf_counter() - begin))
    page = b"done\n"
    took = f"page;dur={1000 * (time.perf_counter() - begin):.3f}"
    head = [("Content-Type", "text/plain"), ("Content-Length", str(len(page))), ("Server-Timing", took)]
    start_response("200 OK", head)
    return [page]
