"""Cost of queries by fleet size, each in its own process; and cost of a push against an import."""

import importlib.util
import json
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import numpy
from lakes import SECOND, T0, LakeMaker

from fleets import ROOT, simulate, tenfold

SIZES = (1, 10, 100, 1000)
SOURCE = ROOT / "python" / "src"
DATA = pathlib.Path(os.environ.get("WHYSLOW_DATA", ROOT / ".." / "shared" / "data"))
SOURCES = [
    ROOT / "fixtures" / "web-incident" / "trace.tar.zst",
    DATA / "ctf" / "many-threads-4.4.tar.xz",
    DATA / "ctf" / "perfctx-6.2.tar.xz",
]
RUNS = 5


def run(arguments, seeds, folder):
    rows = []
    if arguments.program:
        rows += against_import(pathlib.Path(arguments.program).resolve(), folder)
    for hosts in (size for size in SIZES if size <= arguments.hosts):
        rng = numpy.random.default_rng(hosts)
        made = simulate.Fleet(hosts, arguments.seconds, arguments.sigma, seeds=seeds)
        lake = folder / f"cost-{hosts}"
        shutil.rmtree(lake, ignore_errors=True)
        in_child(made.write, lake, rng, made.faults(rng))
        rows += measured(lake, hosts, "")
        if hosts == max(SIZES):
            rows.append(one(lake, hosts, "one host", "percentiles", hosts=[simulate.host_name(7)]))
        in_child(compacted, lake, hosts)
        rows += measured(lake, hosts, "compacted")
        if has_spark():
            rows.append(one(lake, hosts, "compacted, Spark", "deviations", engine="local[2]"))
        if hosts == max(SIZES):
            rows.append(one(lake, hosts, "compacted, one host", "percentiles", hosts=[simulate.host_name(7)]))
            window = [T0, T0 + 5 * SECOND]
            rows.append(one(lake, hosts, "compacted, 5 s", "percentiles", window=window))
            rows.append(one(lake, hosts, "compacted, one kind", "percentiles", parameters={"kind": "block"}))
            rows += of_ten_times(lake, hosts * tenfold.TIMES, folder)
        shutil.rmtree(lake)
    return rows


def in_child(work, *args):
    """Runs `work` in a child process: a child's ru_maxrss is never less than its parent's at the fork."""
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the child exited with status {process.exitcode}")


def has_spark():
    return importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


def against_import(program, folder):
    """CPU time of importing a recording, of `explain`, and of a push to a new lake."""
    recording, lake = folder / "pushed.wsl", folder / "pushed-lake"
    rows = []
    for source in filter(pathlib.Path.exists, SOURCES):
        cpu = {"import": [], "explain": [], "push": []}
        for _ in range(RUNS):
            for old in (recording, lake):
                shutil.rmtree(old, ignore_errors=True)
            cpu["import"].append(cpu_of(program, "-q", "import", source, "-o", recording))
            cpu["explain"].append(cpu_of(program, "-q", "explain", recording))
            cpu["push"].append(cpu_of(program, "-q", "fleet", "push", recording, lake))
        files = [path.stat().st_size for path in lake.rglob("*") if path.is_file()]
        row = {"source": f"{source.parent.name}/{source.name}", "objects": len(files), "kib": sum(files) >> 10}
        row |= {f"{name}_cpu_s": round(statistics.median(times), 2) for name, times in cpu.items()}
        print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
        rows.append(row)
    return rows


def cpu_of(program, *words):
    child = subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(errors.decode())
    return usage.ru_utime + usage.ru_stime


def compacted(lake, hosts):
    """Compacts the lake as the program does: a few hundred hosts per file."""
    listed = [(simulate.host_name(n), simulate.ulid(T0, n + 1)) for n in range(hosts)]
    maker = LakeMaker(lake)
    for begin in range(0, hosts, 250):
        maker.compact(listed[begin : begin + 250], delete=True)


def of_ten_times(lake, hosts, folder):
    larger = folder / f"cost-{hosts}"
    in_child(tenfold.write, lake, larger)
    rows = measured(larger, hosts, "compacted")
    rows.append(one(larger, hosts, "compacted, one kind", "deviations", parameters={"kind": "block"}))
    shutil.rmtree(larger)
    return rows


def measured(lake, hosts, how):
    return [one(lake, hosts, how, query) for query in ("verdicts", "percentiles", "deviations")]


def one(lake, size, how, query, **options):
    """Wall time, CPU time and memory of the child process that the program starts."""
    document = json.dumps({"lake": str(lake), "query": query, "memory": "8GiB", **options}).encode()
    start = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "whyslow.fleet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    child.stdin.write(document)
    child.stdin.close()
    stream, errors = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise RuntimeError(errors.decode())
    import pyarrow

    facts = json.loads(pyarrow.ipc.open_stream(stream).schema.metadata[b"whyslow"])["facts"]
    row = {
        "hosts": size,
        "how": how,
        "query": query,
        "wall_s": round(time.monotonic() - start, 2),
    }
    # Unknown for Spark, which runs in its own process.
    if facts["bytes_read"] is not None:
        row |= {
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
            "memory_mib": usage.ru_maxrss >> 10,
            "files": facts["files"],
            "requests": facts["requests"],
            "read_mib": round(facts["bytes_read"] / 2**20, 2),
        }
    print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
    return row
