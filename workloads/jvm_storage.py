"""A JVM on a disk with slow phases, under async-profiler: appends, syncs, sendfile, reads.

The result is the profile; the ground truth about waits in the kernel comes from a recording of the
same run.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import watchdog
from lab import Lab, UnavailableError, needs

HERE = Path(__file__).resolve().parent / "jvm"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "whyslow-dev/jvm"
URL = "https://repo1.maven.org/maven2/tools/profiler/async-profiler"
# SHA-256 of the jars.
DIGESTS = {
    "3.0": "8f798860049d01f4a2f853596d28c85d2983f0c098f165a32909b7da9c74209f",
    "4.4": "47f321b8cdbadda2c281a612f6ac245254c81a02ce578abf782a53170ea40b37",
}
SEGMENTS, SEGMENT_BYTES = 48, 256 << 10
# Duration of a disk request in a slow phase, in microseconds.
SLOW_US = (90_000, 500_000)


def library(version: str) -> Path:
    """Path of the profiler's library, from Maven Central."""
    jar = CACHE / f"async-profiler-{version}.jar"
    if not jar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = jar.with_suffix(".part")
        try:
            urllib.request.urlretrieve(f"{URL}/{version}/{jar.name}", part)
        except OSError as error:
            raise UnavailableError(f"cannot download {URL}: {error}") from error
        part.rename(jar)
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    if digest != DIGESTS[version]:
        raise UnavailableError(f"{jar} has an unexpected digest: {digest}")
    path = CACHE / version / "libasyncProfiler.so"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar) as archive:
        path.write_bytes(archive.read("linux-x64/libasyncProfiler.so"))
    return path


def compiled(lab: Lab) -> Path:
    """Compiles the programs; the folder with their classes."""
    needs("javac", "java")
    lab.run("javac", "-d", lab.folder, *sorted(HERE.glob("*.java")))
    return lab.folder


def segments(folder: Path) -> None:
    """Creates files that are not in the page cache."""
    for number in range(SEGMENTS):
        path = folder / f"{number:03}.segment"
        path.write_bytes(os.urandom(SEGMENT_BYTES))
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def work(
    lab: Lab,
    seconds: float,
    profile: Path,
    version: str = "4.4",
    options: str = "",
    seed: int = 1,
    kind: str = "ext4",
    healthy: bool = False,
    started: Callable[[int], object] = lambda _pid: None,
) -> dict[str, Any]:
    classes = compiled(lab)
    disk = lab.disk(200 if kind == "ext4" else 400)
    folder = lab.mount(disk, kind, *(["-K"] if kind == "xfs" else []))
    segments(folder)
    out = lab.folder / "profile.jfr"
    agent_options = f"start,event=wall,interval=10ms,lock=1ms,jfr{options},file={out}"
    command = ["java", f"-agentpath:{library(version)}={agent_options}", "-Xmx64m"]
    command += [
        "-XX:+UseSerialGC",
        "-cp",
        str(classes),
        "Storage",
        str(folder),
        str(seconds),
        str(seed),
    ]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    lab.will_undo("process", child.pid, watchdog.start_of(child.pid))
    started(child.pid)
    dice = random.Random(seed)
    try:
        while child.poll() is None:
            time.sleep(dice.uniform(0.5, 1.5))
            if not healthy:
                slow = dice.randint(*SLOW_US)
                disk.set(read_us=slow, write_us=slow)
                time.sleep(dice.uniform(0.3, 1.0))
                disk.set(read_us=0, write_us=0)
    finally:
        disk.set(read_us=0, write_us=0)
        child.wait(60)
    shutil.copy(out, profile)
    return {"pid": child.pid, "disk": disk.name, "folder": str(folder)}
