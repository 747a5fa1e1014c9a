"""Load on two versions of a web server, in short alternating blocks."""

import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
STARTS_S = 20


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def server(times, log):
    """Starts a server that is slower by the factor `times`; its address."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--workers", "1", "--threads", "8"]
    command += ["--bind", f"127.0.0.1:{port}", "app:application"]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=HERE, env={**os.environ, "TIMES": str(times)}, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/page"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(port, process):
    end = time.monotonic() + STARTS_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError("the server does not start; see server-*.log")


def record(arguments, folder):
    """Records the blocks a-000.ndjson, b-000.ndjson, …; the order of the versions alternates."""
    folder.mkdir(parents=True, exist_ok=True)
    with server(1.0, folder / "server-a.log") as a:
        times = longer(arguments, a, folder / "calibration.ndjson")
        interleave(arguments, a, times, folder)


def longer(arguments, url, path):
    """The factor for the page's duration that gives clients the requested shift."""
    block(arguments, url, path)
    rows = requests(path)
    whole = statistics.median(row["total_ns"] / 1e6 for row in rows)
    page = statistics.median(float(row["server_timing"].partition("dur=")[2]) for row in rows)
    return 1 + arguments.shift * whole / page


def interleave(arguments, a, times, folder):
    with server(times, folder / "server-b.log") as b:
        for number in range(arguments.blocks):
            pair = [("a", a), ("b", b)]
            for side, url in pair if number % 2 == 0 else reversed(pair):
                block(arguments, url, folder / f"{side}-{number:03}.ndjson")


def block(arguments, url, path):
    command = [arguments.whyslow, "load", url, "--threads", arguments.threads, "--each", arguments.each, "-o", path]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def read(folder, side):
    """Request lines by block, parsed."""
    blocks = []
    for path in sorted(folder.glob(f"{side}-*.ndjson")):
        blocks.append(requests(path))
    return blocks


def requests(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if "seq" in row]
