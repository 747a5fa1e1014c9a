"""A striped set of disks carries an equal load, and one disk has occasional slow requests.

fio does random reads and writes on the disks in turn, so that the load does not identify the
healthy ones. The ground truth comes from fio: its totals, and its log of every operation with the
disk. `bad_disk.json` has the parameters.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lab import HERE, Disk, Lab, UnavailableError, needs

PARAMETERS = HERE / "bad_disk.json"


def job_file(parameters: dict[str, Any], disks: list[Disk], folder: Path) -> str:
    operations = parameters["operations_of_a_reader_per_disk"] * len(disks)
    # Some engines keep several operations in flight, the others one.
    lines = [
        "[global]",
        f"ioengine={parameters['engine']}",
        f"iodepth={parameters['depth']}",
        "direct=1",
        "rw=randrw",
        f"rwmixwrite={parameters['write_percent']}",
        f"bs={parameters['block_bytes']}",
        f"filename={':'.join(disk.device for disk in disks)}",
        "file_service_type=roundrobin",
        f"size={len(disks) * parameters['mib']}m",
        f"number_ios={operations}",
        "invalidate=0",
        # Threads of one process, which can be killed together.
        "thread=1",
    ]
    for reader in range(parameters["readers"]):
        lines += [
            f"[reader{reader}]",
            f"randseed={parameters['seed'] + reader}",
            f"write_iolog={folder / f'iolog.{reader}'}",
        ]
    return "\n".join(lines) + "\n"


def logged(folder: Path, readers: int) -> Counter[tuple[str, str]]:
    """Operations by device and direction."""
    counts: Counter[tuple[str, str]] = Counter()
    for reader in range(readers):
        for line in (folder / f"iolog.{reader}").read_text().splitlines():
            # From log version 3 on, the time comes first.
            words = line.split()
            words = words[1:] if words and words[0].isdigit() else words
            if len(words) >= 4 and words[1] in ("read", "write"):
                counts[words[0], words[1]] += 1
    return counts


def work(lab: Lab, seconds: float, parameters: dict[str, Any]) -> dict[str, Any]:
    needs("fio")
    disks = [lab.disk(parameters["mib"]) for _ in range(parameters["disks"])]
    for disk in disks:
        disk.set(read_us=parameters["read_us"], write_us=parameters["write_us"])
    bad = disks[parameters["bad"]]
    bad.set(slow_us=parameters["slow_us"], slow_every=parameters["slow_every"])
    jobs = lab.folder / "bad_disk.fio"
    jobs.write_text(job_file(parameters, disks, lab.folder))
    before = {disk.name: disk.state() for disk in disks}
    begin = time.time_ns()
    # fio reports each job separately, and stops it after the run time.
    output = lab.run("fio", "--output-format=json", f"--runtime={int(seconds)}", jobs)
    end = time.time_ns()
    report = json.loads(output[output.index("{") :])
    counts = logged(lab.folder, parameters["readers"])
    totals = {
        way: sum(job[way]["total_ios"] for job in report["jobs"]) for way in ("read", "write")
    }
    for way, total in totals.items():
        in_log = sum(count for (_, one), count in counts.items() if one == way)
        if in_log != total:
            raise UnavailableError(f"fio reports {total} {way} operations, but logs {in_log}")
    of_disks = []
    for disk in disks:
        reads, writes = counts[disk.device, "read"], counts[disk.device, "write"]
        of_disks.append(
            {
                "dev": disk.name,
                "number": disk.number,
                "reads": reads,
                "writes": writes,
                "bytes_read": reads * parameters["block_bytes"],
                "bytes_written": writes * parameters["block_bytes"],
                "slow": disk.state()["slow"] - before[disk.name]["slow"],
            }
        )
    return {
        "guilty": bad.name,
        "load": {"begin_ns": begin, "dur_ns": end - begin},
        "slow_ns": parameters["slow_us"] * 1000,
        "fio": totals,
        "disks": of_disks,
        "parameters": parameters,
    }
