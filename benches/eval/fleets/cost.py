"""What questions cost by the size of the fleet, each asked in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import time

import numpy
from lakes import SECOND, T0, LakeMaker

from fleets import ROOT, simulate

SIZES = (1, 10, 100, 1000)
SOURCE = ROOT / "python" / "src"


def run(arguments, seeds, folder):
    rows = []
    for hosts in (size for size in SIZES if size <= arguments.hosts):
        rng = numpy.random.default_rng(hosts)
        made = simulate.Fleet(hosts, arguments.seconds, arguments.sigma, seeds=seeds)
        lake = folder / f"cost-{hosts}"
        shutil.rmtree(lake, ignore_errors=True)
        made.write(lake, rng, made.faults(rng))
        rows += measured(lake, hosts, "")
        if hosts == max(SIZES):
            rows.append(one(lake, hosts, "one host", "percentiles", hosts=[simulate.host_name(7)]))
        compacted(lake, hosts)
        rows += measured(lake, hosts, "compacted")
        if hosts == max(SIZES):
            rows.append(one(lake, hosts, "compacted, one host", "percentiles", hosts=[simulate.host_name(7)]))
            window = [T0, T0 + 5 * SECOND]
            rows.append(one(lake, hosts, "compacted, 5 s", "percentiles", window=window))
            rows.append(one(lake, hosts, "compacted, one kind", "percentiles", parameters={"kind": "block"}))
        shutil.rmtree(lake)
    return rows


def compacted(lake, hosts):
    """As the program compacts: some hundred hosts a file."""
    listed = [(simulate.host_name(n), simulate.ulid(T0, n + 1)) for n in range(hosts)]
    maker = LakeMaker(lake)
    for begin in range(0, hosts, 250):
        maker.compact(listed[begin : begin + 250], delete=True)


def measured(lake, hosts, how):
    return [one(lake, hosts, how, question) for question in ("verdicts", "percentiles", "deviations")]


def one(lake, size, how, question, **asked):
    """Wall, CPU and memory of the child process that the program starts."""
    document = json.dumps({"lake": str(lake), "question": question, "memory": "8GiB", **asked}).encode()
    begun = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "whyslow.fleet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    child.stdin.write(document)
    child.stdin.close()
    stream, said = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise RuntimeError(said.decode())
    import pyarrow

    facts = json.loads(pyarrow.ipc.open_stream(stream).schema.metadata[b"whyslow"])["facts"]
    row = {
        "hosts": size,
        "how": how,
        "question": question,
        "wall_s": round(time.monotonic() - begun, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "memory_mib": usage.ru_maxrss >> 10,
        "files": facts["files"],
        "requests": facts["requests"],
        "read_mib": round(facts["bytes_read"] / 2**20, 2),
    }
    print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
    return row
