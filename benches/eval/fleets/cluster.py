"""A Spark cluster on loopback: a master and two workers, one of which is killed during a query.

They run Spark's own classes from the PySpark package. Each has a limited lifetime and is killed by its process group.
"""

import contextlib
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import numpy
from whyslow import fleet

from fleets import simulate

HOSTS, SECONDS = 24, 16
#: Lifetime of each process, and timeout of waits.
LIFE_S, WAIT_S = 1800, 120
QUERIES = [
    ("hosts", {}),
    ("percentiles", {"label": "rack"}),
    ("percentiles", {"dimension": "device"}),
    ("deviations", {"all": True}),
    ("deviations", {"all": True, "by": "device"}),
    ("deviations", {"all": True, "by": "kernel"}),
    ("shift", {"all": True, "label": "kernel"}),
    ("rollout", {"at": simulate.T0 + SECONDS // 2 * simulate.SECOND}),
    ("rollout", {"label": "kernel", "value": "6.6.0"}),
    ("verdicts", {}),
    ("culprits", {}),
    ("slowest", {}),
    ("heat", {"bin": "4s"}),
]


def run(seeds, folder):
    """Rows of the comparison, and whether all results were equal."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        print("skipped: Spark needs PySpark and Java")
        return [], True
    lake = folder / "spark"
    shutil.rmtree(lake, ignore_errors=True)
    made = simulate.Fleet(HOSTS, SECONDS, seeds=seeds)
    rng = numpy.random.default_rng(5)
    made.write(lake, rng, made.faults(rng))
    rows = []
    with started(folder) as (master, workers):
        ours, theirs = fleet.open(str(lake)), fleet.open(str(lake), engine=master, memory="1GiB")
        for query, parameters in QUERIES:
            rows.append(compared(ours, theirs, query, parameters))
        start = time.monotonic()
        # During the query: after a third of the time that it took above.
        usual = next(row["seconds"] for row in rows if row["query"] == "deviations")
        killer = threading.Timer(usual / 3, workers[0].kill)
        killer.start()
        rows.append(compared(ours, theirs, "deviations", {"all": True}, "with a worker killed"))
        killer.cancel()
        killed_at = min(usual / 3, time.monotonic() - start)
        rows[-1]["killed_after_s"] = round(killed_at, 1)
        ended = workers[0].poll() is not None
        if not ended:
            print("the worker was not killed in time")
        stop()
    return rows, ended and all(row["same"] and row["rows"] for row in rows)


def compared(ours, theirs, query, parameters, how=""):
    start = time.monotonic()
    answer = theirs.query(query, **parameters).table
    seconds = time.monotonic() - start
    same = answer.equals(ours.query(query, **parameters).table)
    words = " ".join(f"{name}={value}" for name, value in parameters.items())
    print(
        f"{query} {words} {how}: {answer.num_rows} rows, {'equal' if same else 'DIFFERENT'}, {seconds:.1f} s",
        flush=True,
    )
    return {
        "query": query,
        "parameters": parameters,
        "how": how,
        "rows": answer.num_rows,
        "same": same,
        "seconds": seconds,
    }


def stop():
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@contextlib.contextmanager
def started(folder):
    """Starts the cluster; the master's address, and the two workers."""
    import pyspark

    home = pathlib.Path(pyspark.__file__).parent
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    java = [shutil.which("java"), "-cp", f"{home}/jars/*", *module_flags()]
    deploy = "org.apache.spark.deploy"
    children = []
    (scala,) = home.glob("jars/scala-library-*.jar")
    # What Spark's scripts set, also for the driver, which is this process.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_CONF_DIR"] = configured(folder)
    version = ".".join(scala.stem.rpartition("-")[2].split(".")[:2])
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": version}
    try:
        words = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        children.append(child([*java, "-Xmx256m", f"{deploy}.master.Master", *words], folder, "master", environment))
        wait_for(port)
        for number in range(2):
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            words += ["--work-dir", str(folder / f"worker-{number}"), master]
            command = [*java, "-Xmx256m", f"{deploy}.worker.Worker", *words]
            children.append(child(command, folder, f"worker-{number}", environment))
        yield master, [Worker(process) for process in children[1:]]
    finally:
        for process in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def configured(folder):
    """Writes Spark's settings, for few rows on two CPUs; their folder."""
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines))
    return str(conf)


class Worker:
    """A worker and its executors, which share a process group."""

    def __init__(self, process):
        self._process = process

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def poll(self):
        deadline = time.monotonic() + 5
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        return self._process.returncode


def child(command, folder, name, environment):
    log = open(folder / f"{name}.log", "wb")  # noqa: SIM115 - owned by the child
    # The child ends even if this process is killed.
    return subprocess.Popen(
        ["timeout", "-s", "KILL", str(LIFE_S), *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )


def module_flags():
    """The options that Spark's launcher passes to Java 17."""
    opened = ("java.lang", "java.lang.invoke", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")
    inner = ("java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")
    return [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (*opened, *inner)]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"port {port} is not open after {WAIT_S} s")
