"""Recordings and lakes of former format versions have the names of today."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from conftest import ROOT

import whyslow
from whyslow import fleet, renamed
from whyslow.fleet import reader

FORMER = ROOT / "fixtures" / "former-versions"


def test_a_recording_of_version_2_has_the_names_of_today() -> None:
    with whyslow.open(FORMER / "recording-2.wsl.tar.zst") as recording:
        assert "reported_by" in recording.schema("counter").names
        assert "told_by" not in recording.schema("counter").names
        counters = recording.table("counter", ["reported_by", "name"])
        assert set(counters["reported_by"].to_pylist()) == {"iostat", "runqslower"}
        waits = recording.table("lock_wait", window=(recording.begin_ns, recording.end_ns + 1))
        assert set(waits["reported_by"].to_pylist()) == {"dump"}
        assert "read" in recording.table("request_thread")["received_by"].to_pylist()
        names = recording.table("trace_stat")["name"].to_pylist()
        assert {"REQUEST_NOT_HTTP", "SNOOP_STATUS_LINE"} <= set(names)
        assert not {"REQUEST_NOT_ASKED", "SNOOP_TALK"} & set(names)


def test_sql_has_the_names_of_today() -> None:
    with whyslow.open(FORMER / "recording-2.wsl.tar.zst") as recording:
        sql = "SELECT DISTINCT reported_by FROM counter ORDER BY reported_by"
        assert recording.sql(sql).fetchall() == [("iostat",), ("runqslower",)]
        sql = "SELECT count(*) FROM trace_stat WHERE name = 'SNOOP_STATUS_LINE'"
        assert recording.sql(sql).fetchall() == [(1,)]
        sql = "SELECT count(*) FROM request_thread WHERE received_by = 'read'"
        assert recording.sql(sql).fetchall()[0][0] > 0


def test_a_lake_of_commit_version_1_has_the_names_of_today() -> None:
    lake = fleet.open(str(FORMER / "lake-1"))
    answer = lake.sql("SELECT source, count(*) AS n FROM finding GROUP BY source")
    assert answer.rows() == [{"source": "finding", "n": 1}]


def test_words_of_a_lake_are_replaced_at_once() -> None:
    former = pa.table({"told_by": ["story", "finding", "pattern", "story"]})
    found = reader._of_today(former, "finding")
    expected = ["finding", "observation", "pattern", "finding"]
    assert found["source"].to_pylist() == expected
    assert reader._of_today(former, "rollup") is former


def test_the_list_of_names_is_that_of_the_program() -> None:
    text = (ROOT / "crates/whyslow-store/src/renamed.rs").read_text()
    code = text.split("#[cfg(test)]")[0]
    fields = r'since: (\d+),\s+table: "(\w+)",\s+old: "(\w+)",\s+new: "(\w+)",'
    columns = {(int(since), *names) for since, *names in re.findall(fields, code)}
    assert columns == set(renamed._COLUMNS)
    anomalies = set(re.findall(r'anomaly\("(\w+)", "(\w+)"\)', code))
    words = re.findall(
        r'since: 3,\s+table: "(\w+)",\s+column: "(\w+)",\s+old: "(\w+)",\s+new: "(\w+)",', code
    )
    expected = {(3, "trace_stat", "name", *pair) for pair in anomalies} | {(3, *w) for w in words}
    assert expected == set(renamed._WORDS)


@pytest.mark.parametrize("table", ["counter", "lock_wait", "request_thread"])
def test_todays_recordings_are_not_translated(table: str) -> None:
    assert renamed.new_columns(3, table) == {}
    assert renamed.new_columns(2, table) != {}
