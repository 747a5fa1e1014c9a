"""The child process of `whyslow fleet`: one query on stdin, one answer on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import ROOT
from fleets import HOSTILE, write

from whyslow import fleet


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet")
    write(path)
    return path


def run(request: Any, *words: str) -> subprocess.CompletedProcess[bytes]:
    document = request if isinstance(request, bytes) else json.dumps(request).encode()
    return subprocess.run(
        [sys.executable, "-m", "whyslow.fleet", *words],
        input=document,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python" / "src")},
    )


def test_an_answer_is_a_stream_of_arrow_with_all_it_says(lake: Path) -> None:
    done = run(
        {
            "lake": str(lake),
            "query": "verdicts",
            "parameters": {"limit": 5},
            "window": None,
            "hosts": ["web-*"],
            "cluster": None,
            "engine": "duckdb",
            "memory": "1GiB",
            "threads": 2,
        }
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    table = pa.ipc.open_stream(done.stdout).read_all()
    about = json.loads(table.schema.metadata[b"whyslow"])
    wanted = fleet.open(str(lake), hosts="web-*").query("verdicts", limit=5)
    assert table.to_pylist() == wanted.rows()
    assert about["query"] == "verdicts"
    assert about["columns"]["blamed_ns"] == "Duration"
    assert about["columns"]["hosts"] == "Count"
    assert about["columns"]["id"] == "Id"
    assert about["caveats"] == list(wanted.caveats)
    assert about["facts"]["hosts"] == 24
    assert about["facts"]["bytes_read"] > 0


def test_nothing_but_the_answer_is_on_standard_output(lake: Path) -> None:
    """A statement that takes some seconds, for which engines draw a progress bar."""
    text = (
        "SELECT COUNT(*) AS n FROM rollup AS a CROSS JOIN rollup AS b "
        "CROSS JOIN (SELECT r.ts FROM rollup AS r LIMIT 300) AS c WHERE a.count + b.count > c.ts"
    )
    done = run({"lake": str(lake), "sql": text, "threads": 1})
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert pa.ipc.open_stream(done.stdout).read_all().to_pylist() == [{"n": 0}]


def test_sql_and_progress(lake: Path) -> None:
    text = "SELECT victim FROM finding WHERE host = 'web-01'"
    done = run({"lake": str(lake), "sql": text, "progress": True})
    assert done.returncode == 0
    assert b"listing the lake" in done.stderr
    assert pa.ipc.open_stream(done.stdout).read_all().to_pylist() == [{"victim": HOSTILE}]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"{", "not valid JSON"),
        ([1], "not a JSON object"),
        ({"query": "hosts"}, "`lake` is missing"),
        ({"lake": "/nowhere"}, "either `query` or `sql`"),
        ({"lake": "/nowhere", "query": "hosts", "sql": "SELECT 1"}, "either"),
        ({"lake": "/nowhere", "query": "hosts", "nonsense": 1}, "unknown key"),
        ({"lake": 5, "query": "hosts"}, "wrong type"),
        ({"lake": "/nowhere", "query": "hosts", "version": 9}, "version 9"),
        ({"lake": "/nowhere", "query": "hosts"}, "the lake `/nowhere` does not exist"),
        ({"lake": "ftp://x", "query": "hosts"}, "unsupported store"),
        ({"lake": "/nowhere", "query": "hosts", "window": [5, 5]}, "is empty"),
        ({"lake": "/nowhere", "query": "hosts", "window": [5]}, "invalid window"),
    ],
)
def test_what_is_wrong_is_one_line_of_json(document: Any, message: str) -> None:
    done = run(document)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    error = json.loads(line)
    assert message in error["error"]
    assert set(error) == {"error", "causes", "hint"}


@pytest.mark.parametrize("passing", [False, True])
def test_hints_do_not_name_a_lake_that_is_made_for_one_query(lake: Path, passing: bool) -> None:
    request = {"lake": str(lake), "query": "hosts", "hosts": ["no-such"], "passing": passing}
    error = json.loads(run(request).stderr)
    assert error["error"] == "no recordings in the lake match"
    assert (str(lake) in error["hint"]) != passing
    assert ("--lake" in error["hint"]) != passing
    assert run({**request, "hosts": ["web-*"]}).returncode == 0


def test_describe_tells_every_query() -> None:
    done = run(b"", "--describe")
    described = json.loads(done.stdout)
    assert {one["name"] for one in described["queries"]} == set(fleet.queries())
    for one in described["queries"]:
        assert one["title"]
        assert one["columns"]
        for parameter in one["parameters"]:
            assert parameter["about"], (one["name"], parameter)
    assert run(b"", "--nonsense").returncode == 2
