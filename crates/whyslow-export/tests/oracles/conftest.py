"""Exports are read by the tools they are for, or with the format definitions of these tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
sys.path.append(str(ROOT / "python/tests"))

from needs import pytest_make_collect_report, pytest_runtest_makereport  # noqa: E402, F401 - hooks

TRACES = ["web-incident/trace.tar.zst"]


@pytest.fixture(scope="session")
def program():
    named = os.environ.get("WHYSLOW_BINARY")
    if not named:
        pytest.skip("WHYSLOW_BINARY is not set to the program [tools]")
    return named


@pytest.fixture(scope="session", params=[*TRACES, "stacks"])
def recording(request, program, tmp_path_factory):
    """A recording of a trace of this repository."""
    folder = tmp_path_factory.mktemp("recorded")
    source = ROOT / "fixtures" / request.param
    if request.param == "stacks":
        source = folder / "stacks.txt"
        source.write_text(stacks())
    path = folder / "made.wsl"
    subprocess.run([program, "import", source, "-o", path, "-q"], check=True)
    return path


@pytest.fixture
def export(program, recording, tmp_path):
    def run(form, *flags):
        path = tmp_path / form
        subprocess.run([program, "export", form, recording, "-q", "-o", path, *flags], check=True)
        return path

    return run


@pytest.fixture
def query(program, recording):
    def run(*words):
        kind, verb, *flags = words
        answer = subprocess.run(
            [program, kind, verb, recording, "--json", "-q", *flags],
            check=True,
            stdout=subprocess.PIPE,
        )
        return json.loads(answer.stdout)

    return run


@pytest.fixture
def rows_of(program, recording):
    """Number of rows of each table according to `info`."""
    answer = subprocess.run(
        [program, "info", recording, "--json", "-q"], check=True, stdout=subprocess.PIPE
    )
    tables = json.loads(answer.stdout)["tables"]
    listed = next(table for table in tables if table["name"] == "tables")
    counted = {row["table"]: row["rows"] for row in listed["rows"]}
    return lambda table: counted.get(table, 0)


def stacks():
    """Three waiting threads with stacks, one of them with hostile names."""
    lines = ["whyslow-text 1"]
    names = ["web", "db", "<b>;x 1"]
    for number in range(60):
        tid = 10 + number % 3
        comm = json.dumps(names[number % 3])
        begin, end = f"{1 + number}.000000000", f"{1 + number}.{5 + number:03}000000"
        context = f"(tid={tid} pid=10 comm={comm})"
        lines += [
            f"{begin} [0] {context} sched_switch prev={tid} prev_comm={comm} prev_state=D next=0",
            f"{end} [0] sched_switch prev=0 prev_state=R next={tid} next_comm={comm}",
            f"{end} [0] {context} stack kind=back since={begin} state=D cpu=0 "
            f"kernel=io_schedule;k{number % 5} user=u{number % 4};main",
            f"{1 + number}.900000000 [0] {context} sched_switch prev={tid} prev_comm={comm} "
            f"prev_state=S next={10 + (number + 1) % 3} "
            f"next_comm={json.dumps(names[(number + 1) % 3])}",
        ]
    return "\n".join(lines) + "\n"
