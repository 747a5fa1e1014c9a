"""Perfetto's own trace_processor, where somebody has it, finds the same operations and the same time.

It comes as a program only from servers of its maker, or is built from its sources (GN, target
trace_processor_shell): so TRACE_PROCESSOR names it, or PATH has it, or these tests say that they skip.
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
        pytest.skip("trace_processor_shell is not installed, and TRACE_PROCESSOR does not name it [machine]")
    return named


@pytest.fixture
def select(shell, export, tmp_path):
    trace = export("perfetto")

    def run(query):
        path = tmp_path / "query.sql"
        path.write_text(query)
        told = subprocess.run([shell, "-q", path, trace], check=True, capture_output=True, text=True)
        return list(csv.DictReader(io.StringIO(told.stdout.strip())))

    return run


def by(rows, *columns):
    return {row[columns[0]]: tuple(int(row[column]) for column in columns[1:]) for row in rows}


def log(ask, kind):
    return ask(kind, "log", "-n", "0")["tables"][0]["rows"]


def summed(rows, key):
    """Count and time of what has an end, by key."""
    sums = {}
    for row in rows:
        if row["dur_ns"] is not None:
            count, time = sums.get(row[key], (0, 0))
            sums[row[key]] = (count + 1, time + row["dur_ns"])
    return sums


def test_nothing_is_lost_or_wrong(select):
    assert select("select name, value from stats where value > 0 and severity in ('error', 'data_loss')") == []


def test_calls(select, ask, rows_of):
    if rows_of("syscall") == 0:
        pytest.skip("no calls in it")
    told = select("select name, count(*) n, sum(dur) ns from slice where category = 'syscall' and dur >= 0 group by name")
    assert by(told, "name", "n", "ns") == summed(log(ask, "syscalls"), "name")
    (every,) = select("select count(*) n from slice where category = 'syscall'")
    assert int(every["n"]) == rows_of("syscall")


def test_requests(select, ask, rows_of):
    if rows_of("block_io") == 0:
        pytest.skip("no requests in it")
    told = select(
        "select track.name dev, count(*) n, sum(dur) ns from slice join track on track.id = slice.track_id "
        "where category = 'block' and dur >= 0 group by dev"
    )
    assert by(told, "dev", "n", "ns") == summed(log(ask, "block"), "dev")


def test_time_slices(select, ask, rows_of):
    if rows_of("sched_slice") == 0:
        pytest.skip("no scheduling in it")
    told = select("select tid, count(*) n from sched_slice join thread using (utid) where tid != 0 group by tid")
    wanted = {}
    for row in log(ask, "cpu"):
        wanted[str(row["tid"])] = (wanted.get(str(row["tid"]), (0,))[0] + 1,)
    assert by(told, "tid", "n") == wanted


def test_waits(select, ask, rows_of):
    """Time that threads waited uninterruptibly. Perfetto takes the first switch of a CPU for the beginning
    of who runs then, and knows nothing of whom it replaced."""
    if rows_of("thread_state") == 0:
        pytest.skip("no scheduling in it")
    told = select(
        "select tid, sum(dur) ns from thread_state join thread using (utid) "
        "where tid != 0 and dur > 0 and state like 'D%' group by tid"
    )
    wanted = {}
    rows = log(ask, "states")
    first = min(row["ts_ns"] for row in rows)
    for row in rows:
        if row["state"] == "uninterruptible" and row["dur_ns"] and row["ts_ns"] > first:
            wanted[str(row["tid"])] = (wanted.get(str(row["tid"]), (0,))[0] + row["dur_ns"],)
    assert by(told, "tid", "ns") == wanted
