"""Perfetto's own trace_processor, if available, finds the same operations and the same time.

It can only be downloaded from servers of its maker, or built from source (GN, target
trace_processor_shell). These tests skip unless TRACE_PROCESSOR is set to it or it is in PATH.
"""

import csv
import io
import os
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def shell():
    named = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if not named:
        pytest.skip("trace_processor_shell is not installed, and TRACE_PROCESSOR is not set [machine]")
    return named


@pytest.fixture
def select(shell, export, tmp_path):
    trace = export("perfetto")

    def run(query):
        path = tmp_path / "query.sql"
        path.write_text(query)
        output = subprocess.run([shell, "-q", path, trace], check=True, capture_output=True, text=True)
        return list(csv.DictReader(io.StringIO(output.stdout.strip())))

    return run


def by(rows, *columns):
    return {row[columns[0]]: tuple(int(row[column]) for column in columns[1:]) for row in rows}


def log(query, kind):
    return query(kind, "log", "-n", "0")["tables"][0]["rows"]


def summed(rows, key):
    """Count and time of completed operations, by key."""
    sums = {}
    for row in rows:
        if row["dur_ns"] is not None:
            count, time = sums.get(row[key], (0, 0))
            sums[row[key]] = (count + 1, time + row["dur_ns"])
    return sums


def test_nothing_is_lost_or_wrong(select):
    assert select("select name, value from stats where value > 0 and severity in ('error', 'data_loss')") == []


def test_calls(select, query, rows_of):
    if rows_of("syscall") == 0:
        pytest.skip("no calls in this recording")
    found = select("select name, count(*) n, sum(dur) ns from slice where category = 'syscall' and dur >= 0 group by name")
    assert by(found, "name", "n", "ns") == summed(log(query, "syscalls"), "name")
    (every,) = select("select count(*) n from slice where category = 'syscall'")
    assert int(every["n"]) == rows_of("syscall")


def test_requests(select, query, rows_of):
    if rows_of("block_io") == 0:
        pytest.skip("no requests in this recording")
    found = select(
        "select track.name dev, count(*) n, sum(dur) ns from slice join track on track.id = slice.track_id "
        "where category = 'block' and dur >= 0 group by dev"
    )
    assert by(found, "dev", "n", "ns") == summed(log(query, "block"), "dev")


def test_time_slices(select, query, rows_of):
    if rows_of("sched_slice") == 0:
        pytest.skip("no scheduling in this recording")
    found = select("select tid, count(*) n from sched_slice join thread using (utid) where tid != 0 group by tid")
    wanted = {}
    for row in log(query, "cpu"):
        wanted[str(row["tid"])] = (wanted.get(str(row["tid"]), (0,))[0] + 1,)
    assert by(found, "tid", "n") == wanted


def test_waits(select, query, rows_of):
    """Time in uninterruptible sleep. Perfetto takes the first switch of a CPU as the start of the next
    thread, and ignores the thread that it replaced."""
    if rows_of("thread_state") == 0:
        pytest.skip("no scheduling in this recording")
    found = select(
        "select tid, sum(dur) ns from thread_state join thread using (utid) "
        "where tid != 0 and dur > 0 and state like 'D%' group by tid"
    )
    wanted = {}
    rows = log(query, "states")
    first = min(row["ts_ns"] for row in rows)
    for row in rows:
        if row["state"] == "uninterruptible" and row["dur_ns"] and row["ts_ns"] > first:
            wanted[str(row["tid"])] = (wanted.get(str(row["tid"]), (0,))[0] + row["dur_ns"],)
    assert by(found, "tid", "ns") == wanted
