"""Counters can be read by the reference parser of the format, and equal the answers of queries."""

import pytest


@pytest.fixture
def families(export):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus-client is not installed [python]")
    text = export("openmetrics").read_text()
    # It checks names, units, types, order of buckets, counts against the last bucket, and the end.
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def samples(family, suffix, *labels):
    """Values by labels."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for sample in family.samples
        if sample.name == family.name + suffix
    }


def rows(query, *words):
    return query(*words, "-n", "0")["tables"][0]["rows"]


def finished(rows, *keys):
    actual = {tuple(row[key] or "" for key in keys): row for row in rows}
    return {key: row for key, row in actual.items() if row["count"] > row["unfinished"]}


def nearly(actual, wanted):
    assert actual.keys() == wanted.keys() and actual
    for key, value in wanted.items():
        assert actual[key] == pytest.approx(value, abs=2e-9), key


def check_operations(families, rows, name, keys, labels):
    family = families.get(f"whyslow_{name}_duration_seconds")
    wanted = finished(rows, *keys)
    if family is None:
        assert not wanted
        pytest.skip(f"no {name} in this recording")
    counts = {key: row["count"] - row["unfinished"] for key, row in wanted.items()}
    nearly(samples(family, "_count", *labels), counts)
    nearly(samples(family, "_sum", *labels), {key: row["total_ns"] / 1e9 for key, row in wanted.items()})
    buckets = {}
    for sample in family.samples:
        if sample.name.endswith("_bucket"):
            key = tuple(sample.labels[label] for label in labels)
            buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
    for key, row in wanted.items():
        slowest = row["max_ns"] / 1e9
        assert all((count == counts[key]) == (end >= slowest) for end, count in buckets[key]), key


def test_requests_are_those_of_devices(families, query):
    if "whyslow_block_request_bytes" not in families:
        pytest.skip("no requests in this recording")
    found = rows(query, "block", "stats", "--by", "dev,op")
    check_operations(families, found, "block_request", ("dev", "op"), ("device", "op"))
    actual = samples(families["whyslow_block_request_bytes"], "_total", "device", "op")
    nearly(actual, {key: row["bytes"] for key, row in finished(found, "dev", "op").items()})


def test_calls_are_those_by_name(families, query):
    if "whyslow_syscall_errors" not in families:
        pytest.skip("no calls in this recording")
    found = rows(query, "syscalls", "stats", "--waits")
    wanted = finished(found, "name")
    family = families["whyslow_syscall_duration_seconds"]
    nearly(samples(family, "_count", "syscall"), {key: row["count"] - row["unfinished"] for key, row in wanted.items()})
    actual = samples(families["whyslow_syscall_errors"], "_total", "syscall")
    nearly(actual, {key: row["errors"] for key, row in wanted.items()})


def test_time_in_states_is_that_of_commands(families, query):
    actual = samples(families["whyslow_thread_state_seconds"], "_total", "command", "state")
    wanted = {}
    for row in rows(query, "states", "usage", "--by", "comm"):
        for state in ("running", "runnable", "uninterruptible", "sleeping"):
            if row[f"{state}_ns"]:
                wanted[(row["comm"] or "", state)] = row[f"{state}_ns"] / 1e9
    others = {"idle", "stopped", "traced", "dead", "parked", "zombie", "blocked", "waiting", "unknown"}
    assert {state for _, state in actual} <= others | {state for _, state in wanted}
    nearly({key: value for key, value in actual.items() if key[1] not in others}, wanted)


def test_waits_for_cpus_are_all_there(families, query):
    found = rows(query, "sched", "stats", "--by", "reason")
    check_operations(families, found, "cpu_wait", ("reason",), ("reason",))
