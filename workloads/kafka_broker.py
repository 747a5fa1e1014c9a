"""Apache Kafka with a lagging consumer on a slow disk: producers wait for its reads.

The broker sends the start of a segment that is not in the page cache with sendfile(). XFS holds
the inode lock meanwhile, and the producers' records go to the end of the same file. The appending
request handler holds the log's lock in the broker, for which the other handlers wait.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

import watchdog
from jvm_storage import CACHE, library
from lab import Lab, UnavailableError, needs

HERE = Path(__file__).resolve().parent / "kafka"
VERSION = "3.9.1"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
MIB = 96
# Duration of a disk request in a slow phase, in microseconds.
SLOW_US = (150_000, 450_000)
START_SECONDS = 60
END_BYTES = 4 << 20


def jars() -> str:
    """Downloads the broker from Maven Central; its class path."""
    folder = CACHE / f"kafka-{VERSION}"
    if not folder.exists():
        needs("mvn")
        part = CACHE / f"kafka-{VERSION}.part"
        shutil.rmtree(part, ignore_errors=True)
        words = ["mvn", "-q", "-B", "-f", HERE / "pom.xml", PLUGIN]
        words += ["-DincludeScope=runtime", f"-DoutputDirectory={part}"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode != 0:
            raise UnavailableError(f"cannot download Kafka: {done.stdout[-500:]}")
        part.rename(folder)
    return f"{folder}/*"


def ports(count: int) -> list[int]:
    """Free ports on loopback."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


class Broker:
    """A broker with its log in a folder, and its metadata elsewhere."""

    def __init__(self, lab: Lab, log: Path, options: list[str]) -> None:
        self.lab = lab
        self.classpath = jars()
        data, control = ports(2)
        self.address = f"127.0.0.1:{data}"
        config = lab.folder / "server.properties"
        config.write_text(
            (HERE / "server.properties").read_text()
            + f"listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{control}\n"
            + f"controller.quorum.voters=1@127.0.0.1:{control}\n"
            + f"log.dirs={log}\nmetadata.log.dir={lab.folder}/metadata\n"
        )
        lab.run(
            "java", "-cp", self.classpath, "kafka.tools.StorageTool",
            "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config,
        )  # fmt: skip
        self.child = self.start([*options, "-Xmx512m", "kafka.Kafka", str(config)])
        self._await(data)

    def start(self, words: list[str], **pipes: Any) -> subprocess.Popen[bytes]:
        """Starts a JVM with the broker's classes."""
        command = ["java", "-cp", f"{self.classpath}:{self.lab.folder}", *words]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipes}
        child = subprocess.Popen(command, cwd=self.lab.folder, **pipes)
        self.lab.will_undo("process", child.pid, watchdog.start_of(child.pid))
        return child

    def _await(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError as error:
                if self.child.poll() is not None or time.monotonic() > deadline:
                    raise UnavailableError("the broker did not start") from error
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        self.child.terminate()
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def drop_cache(folder: Path) -> None:
    """Drops segments from the page cache, except for their ends, which are written."""
    for path in folder.glob("orders-0/*.log"):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        old = os.fstat(fd).st_size - END_BYTES
        if old > 0:
            os.posix_fadvise(fd, 0, old, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def load(lab: Lab, broker: Broker, disk: Any, folder: Path, seconds: float, seed: int) -> list[Any]:
    """Runs clients for `seconds` on a disk with slow phases; their slow requests."""
    truth = lab.folder / "requests.csv"
    words = ["-Xmx256m", "Clients", broker.address, str(seconds), str(MIB), str(truth)]
    clients = broker.start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert clients.stdin is not None
    assert clients.stdout is not None
    if clients.stdout.readline() != b"filled\n":
        raise UnavailableError("the clients failed to fill their topic")
    drop_cache(folder)
    clients.stdin.write(b"\n")
    clients.stdin.close()
    dice = random.Random(seed)
    try:
        while clients.poll() is None:
            time.sleep(dice.uniform(1, 2))
            drop_cache(folder)
            if seed:
                disk.set(read_us=dice.randint(*SLOW_US))
            time.sleep(dice.uniform(1, 2))
            disk.set(read_us=0)
    finally:
        disk.set(read_us=0)
        clients.wait(60)
    with open(truth, newline="") as file:
        return [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]


def work(
    lab: Lab,
    seconds: float,
    profile: Path | None = None,
    version: str = "4.4",
    seed: int = 1,
    started: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """Runs the broker under async-profiler or JDK Flight Recorder; a seed of 0 keeps the disk fast.

    Calls `started` with the broker's pid.
    """
    needs("java", "javac")
    disk = lab.disk(600)
    folder = lab.mount(disk, "xfs", "-K")
    lab.run("javac", "-cp", jars(), "-d", lab.folder, HERE / "Clients.java")
    log = folder / "log"
    log.mkdir()
    options, out = [], lab.folder / "profile.jfr"
    if profile and version == "jdk":
        options = [f"-XX:StartFlightRecording=filename={out},settings=profile"]
    elif profile:
        agent_options = f"start,event=wall,interval=10ms,lock=1ms,jfr,chunktime=10,file={out}"
        options = [f"-agentpath:{library(version)}={agent_options}"]
    broker = Broker(lab, log, options)
    try:
        started(broker.child.pid)
        slow = load(lab, broker, disk, log, seconds, seed)
    finally:
        broker.stop()
    if profile:
        shutil.copy(out, profile)
    return {"pid": broker.child.pid, "disk": disk.name, "folder": str(log), "slow": slow}
