"""Every query of `sql/fleet/` gives the same rows on DuckDB and on Spark (`local[2]`).

Spark is started once for all tests, since that takes as long as dozens of them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from fleets import HOSTILE, SECONDS, SHIFT_FROM, write
from lakes import SECOND, T0, LakeMaker, Operations, Pushed

import whyslow
from whyslow import fleet

MASTER = "local[2]"
# Parameters of each query; together they cover every branch of the SQL.
QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("hosts", {}),
    ("percentiles", {}),
    ("percentiles", {"label": "rack", "dimension": "device"}),
    ("deviations", {"all": True}),
    ("deviations", {"all": True, "by": "device", "within": "rack"}),
    ("deviations", {"all": True, "by": "rack"}),
    ("shift", {"all": True, "label": "rack"}),
    ("rollout", {"at": T0 + SHIFT_FROM * SECOND}),
    ("rollout", {"label": "rack", "value": "r2"}),
    ("verdicts", {}),
    ("verdicts", {"label": "kernel"}),
    ("culprits", {}),
    ("slowest", {"limit": 20}),
    ("heat", {"bin": "4s"}),
]


@pytest.fixture(scope="session")
def spark() -> Iterator[str]:
    """The master of a running Spark; skips without one."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install 'whyslow[spark]' [spark]")
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed: apt install default-jre-headless [spark]")
    output = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < 17:
        pytest.skip(f"Spark needs Java 17 or later: {output.splitlines()[:1]} [spark]")
    with pytest.MonkeyPatch.context() as patch:
        # Such short queries are worth neither the second compiler nor threads that collect garbage,
        # and a small cache of compiled code or young generation costs a fifth of the CPU time.
        options = ["TieredStopAtLevel=1", "+UseSerialGC", "ReservedCodeCacheSize=256m"]
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(f"-XX:{option}" for option in options))
        patch.setenv("SPARK_SUBMIT_OPTS", "-Xms1g -Xmn600m")
        from whyslow.fleet.spark import session

        started = session(MASTER, "2GiB", 2)
        yield MASTER
        started.stop()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fleet") / "la[k]e"
    write(path)
    return str(path)


def test_every_question_is_asked() -> None:
    texts = {path.stem.removesuffix("_of_groups") for path in (ROOT / "sql/fleet").glob("*.sql")}
    assert {name for name, _ in QUERIES} == texts


@pytest.mark.parametrize(
    ("name", "parameters"), QUERIES, ids=[f"{name}-{'-'.join(how)}" for name, how in QUERIES]
)
def test_both_engines_give_the_same_rows(
    spark: str, lake: str, name: str, parameters: dict[str, Any]
) -> None:
    ours = fleet.open(lake).query(name, **parameters)
    theirs = fleet.open(lake, engine=spark).query(name, **parameters)
    assert ours.table.num_rows > 0
    assert theirs.table.schema == ours.table.schema
    for row, other in zip(ours.rows(), theirs.rows(), strict=True):
        assert row == other
    assert theirs.caveats == ours.caveats
    assert theirs.facts["engine"] == spark


def test_windows_hosts_and_compactions_are_the_same(spark: str, lake: str) -> None:
    # Two of the four hosts of a compaction.
    how: dict[str, Any] = {
        "window": (T0 + 3 * SECOND, T0 + (SECONDS - 2) * SECOND),
        "hosts": ["web-1[01]", "web-07", "db-*"],
    }
    ours = fleet.open(lake, **how).query("percentiles", dimension="all")
    theirs = fleet.open(lake, engine=spark, **how).query("percentiles", dimension="all")
    assert ours.facts["hosts"] == 4
    assert theirs.table.equals(ours.table)


def test_seconds_of_several_recordings_are_the_same(spark: str, tmp_path: Path) -> None:
    maker = LakeMaker(tmp_path)
    for number in range(9):
        # Consecutive parts of seconds, and some that overlap them.
        begin = T0 + number * SECOND // 3 - number // 5 * SECOND
        ts = begin + np.arange(20) * SECOND // 60
        one = [Operations("io", "read", ts, np.arange(20) * 1000 + 5)]
        maker.push(Pushed(f"h{number // 8}", one, ts=begin, dur=SECOND // 3))
    text = "SELECT host, kind, ts, recording, place FROM counted ORDER BY host, ts, place"
    ours, theirs = fleet.open(str(tmp_path)), fleet.open(str(tmp_path), engine=spark)
    found = ours.sql(text)
    assert max(row["place"] for row in found.rows()) > 1
    assert theirs.sql(text).table.equals(found.table)
    # Undecidable tests have no q, and a class without operations has a caveat.
    for name, how in (
        ("rollout", {"at": T0 + SECOND}),
        ("percentiles", {"kind": "io", "op": "raed"}),
    ):
        here, there = ours.query(name, **how), theirs.query(name, **how)
        assert there.table.equals(here.table)
        assert there.caveats == here.caveats
    assert {row["q"] for row in ours.query("rollout", at=T0 + SECOND).rows()} == {None}


def test_ones_own_sql_and_values_are_the_same(spark: str, lake: str) -> None:
    text = (
        "SELECT host, kind, CAST(SUM(count) AS BIGINT) AS operations FROM operation "
        "GROUP BY host, kind ORDER BY host, kind"
    )
    ours, theirs = fleet.open(lake).sql(text), fleet.open(lake, engine=spark).sql(text)
    assert ours.table.equals(theirs.table)
    named = fleet.open(lake, engine=spark).query("percentiles", dimension="name", key=HOSTILE)
    assert [row["key"] for row in named.rows()] == [HOSTILE]
    with pytest.raises(whyslow.QueryError, match=r"Spark rejected the statement.*nonsense"):
        fleet.open(lake, engine=spark).sql("SELECT nonsense FROM rollup")


def test_a_master_that_is_not_there_is_an_error_with_a_hint(lake: str, tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise ImportError('no pyspark here')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}/python/src"}
    request = f'{{"lake": "{lake}", "query": "hosts", "engine": "local[1]"}}'
    done = subprocess.run(
        ["python3", "-m", "whyslow.fleet"],
        input=request.encode(),
        capture_output=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert b"needs PySpark" in done.stderr
    assert b"pip install 'whyslow[spark]'" in done.stderr
