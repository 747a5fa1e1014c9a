"""Detection on simulated fleets: all bad hosts are named, and no others."""

import shutil

import numpy
from whyslow import fleet

from fleets import simulate

BIN_NS = 1_000_000_000
#: The method was developed on fleets with seeds from 1000 on.
FIRST_SEED = 5000


def run(arguments, seeds, folder):
    """Rows of counts, and whether every bad host and no healthy host was named."""
    rows = []
    for number in range(arguments.fleets):
        rng = numpy.random.default_rng(FIRST_SEED + number)
        made = simulate.Fleet(
            arguments.hosts, arguments.seconds, arguments.sigma, median_ratio=arguments.median, seeds=seeds
        )
        faults = made.faults(rng)
        lake = folder / f"found-{number}"
        shutil.rmtree(lake, ignore_errors=True)
        # Compacted: the results are the same, and writing a thousand hosts takes a third of the time.
        made.write(lake, rng, faults, together=50)
        rows.append(detected(str(lake), faults))
        shutil.rmtree(lake)
        print(f"fleet {number}: {row_text(rows[-1])}", flush=True)
    total = {name: sum(row[name] for row in rows) for name in rows[0] if name != "seconds"}
    print(
        f"{arguments.fleets} fleets of {arguments.hosts} hosts, sigma {arguments.sigma}, median factor {arguments.median}: "
        f"tail {total['tail']}, median {total['median']}, device {total['device']}, rack {total['rack']} "
        f"(at the right second: {total['rack_second']}) of {arguments.fleets}; false positives: hosts "
        f"{total['healthy_hosts']}, devices {total['healthy_devices']}, racks {total['healthy_racks']}"
    )
    healthy = total["healthy_hosts"] + total["healthy_devices"] + total["healthy_racks"]
    missed = sum(arguments.fleets - total[name] for name in ("tail", "median", "device", "rack", "verdicts"))
    return {"sigma": arguments.sigma, "median": arguments.median, "rows": rows, "total": total}, healthy == 0 and missed == 0


def detected(lake, faults, verdicts=True):
    opened = fleet.open(lake, memory="8GiB")
    deviating = [row for row in opened.query("deviations", limit=10_000).rows() if row["deviates"]]
    devices = [row for row in opened.query("deviations", by="device", limit=10_000).rows() if row["deviates"]]
    shifted = opened.query("shift", label="rack").rows()
    named_by = {row["mechanism"]: row["hosts"] for row in opened.query("verdicts").rows()}
    hosts = {row["host"] for row in deviating}
    named = {(row["host"], row["key"]) for row in devices}
    of_rack = {row["since_ts"] for row in shifted if row["label"] == faults.rack}
    since = simulate.T0 + faults.rack_from * BIN_NS
    return {
        "tail": any(row["host"] == faults.tail and row["test"] == "tail" for row in deviating),
        "median": any(row["host"] == faults.median and row["test"] == "median" for row in deviating),
        "device": faults.device in hosts and (faults.device, faults.device_name) in named,
        "rack": bool(of_rack) or not faults.rack,
        "rack_second": since in of_rack or not faults.rack,
        # Simulated fleets contain their verdicts.
        "verdicts": not verdicts or named_by.get("device_slow", 0) == len(faults.hosts),
        "healthy_hosts": len(hosts - faults.hosts),
        "healthy_devices": len({host for host, _ in named} - faults.hosts),
        "healthy_racks": len({row["label"] for row in shifted} - {faults.rack}),
    }


def row_text(row):
    return ", ".join(f"{name} {int(value)}" for name, value in row.items())
