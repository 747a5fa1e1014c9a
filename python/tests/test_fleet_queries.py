"""Results of fleet queries, compared with direct computations and with the generated data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from fleets import BAD_MEDIAN, BAD_TAIL, HOSTILE, SECONDS, SHIFT_FROM, write
from lakes import SECOND, T0, LakeMaker, Operations, Pushed, buckets_of

import whyslow
from whyslow import fleet
from whyslow.fleet.contract import DIMENSIONS, KINDS
from whyslow.fleet.queries import parse

TEXTS = sorted((ROOT / "sql" / "fleet").rglob("*.sql"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> fleet.Fleet:
    path = tmp_path_factory.mktemp("fleet")
    write(path)
    return fleet.open(str(path))


def nearest_rank(values: np.ndarray, permille: int) -> int:
    """The program's definition: exact up to 64 values, else the middle of the bucket, clamped."""
    ordered = np.sort(values)
    value = ordered[-(-permille * len(ordered) // 1000) - 1]
    if len(ordered) <= 64:
        return int(value)
    middle = int(buckets_of(np.array([value]))[1][0])
    return int(min(max(middle, ordered[0]), ordered[-1]))


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000])
def test_percentiles_are_those_of_the_program(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(count)
    maker = LakeMaker(tmp_path)
    parts = []
    # On three hosts, so that histograms are merged; with few operations each value is exact.
    for number, dur in enumerate(np.array_split(rng.lognormal(12, 3, count).astype(np.int64), 3)):
        ts = T0 + rng.integers(9 * SECOND, size=len(dur))
        maker.push(Pushed(f"h{number}", [Operations("io", "read", ts, dur)]))
        parts.append(dur)
    durations = np.concatenate(parts)
    row = fleet.open(str(tmp_path)).query("percentiles").rows()[0]
    assert row["finished"] == count
    assert (row["dur_min_ns"], row["dur_max_ns"]) == (durations.min(), durations.max())
    assert row["dur_total_ns"] == durations.sum()
    for name, permille in (("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)):
        assert row[f"dur_{name}_ns"] == nearest_rank(durations, permille), name


def test_percentiles_by_label_and_dimension(small: fleet.Fleet) -> None:
    whole = {row["kind"]: row["operations"] for row in small.query("percentiles").rows()}
    racks = small.query("percentiles", label="rack", kind="block").rows()
    assert {row["label"] for row in racks} == {"r0", "r1", "r2"}
    assert sum(row["operations"] for row in racks) == whole["block"]
    devices = small.query("percentiles", dimension="device").rows()
    assert {row["key"] for row in devices} == {"sda", "sdb"}
    assert sum(row["operations"] for row in devices) == whole["block"]
    assert [row["hosts"] for row in small.query("percentiles", kind="dns").rows()] == [1]
    assert small.query("percentiles", label="rack", kind="dns").rows()[0]["label"] == "(none)"
    assert small.query("percentiles", limit=1).table.num_rows == 1


def test_the_bad_hosts_deviate_and_no_others(small: fleet.Fleet) -> None:
    answer = small.query("deviations")
    found = {(row["host"], row["kind"], row["test"]) for row in answer.rows() if row["deviates"]}
    assert found == {(BAD_TAIL, "block", "tail"), (BAD_MEDIAN, "block", "median")}
    median = next(row for row in answer.rows() if row["test"] == "median")
    assert 4 < median["ratio"] < 6
    assert median["p"] < 0.01
    everything = small.query("deviations", all=True)
    # Two tests, two kinds, 24 hosts; for the median, the stronger of two tests.
    assert everything.table.num_rows == 96
    assert any(
        "1 hosts not tested: fewer than 100 operations of `dns`" in caveat
        for caveat in answer.caveats
    )
    assert small.recording(median)["host"] == BAD_MEDIAN


def test_a_fast_host_that_is_slow_in_one_thing_is_named(tmp_path: Path) -> None:
    """1.3 times slower than its peers, and 1.7 times slower than it usually is."""
    rng = np.random.default_rng(6)
    maker = LakeMaker(tmp_path)
    for number in range(60):
        level = 0.75 if number == 7 else rng.lognormal(0, 0.1)
        operations = []
        for kind in ("block", "sched", "mem"):
            ts = T0 + rng.integers(10 * SECOND, size=3000)
            dur = rng.lognormal(12, 0.5, 3000) * level
            if number == 7 and kind == "block":
                dur *= 1.7
            operations.append(Operations(kind, "", ts, dur.astype(np.int64)))
        maker.push(Pushed(f"h{number:02}", operations))
    rows = fleet.open(str(tmp_path)).query("deviations", all=True, limit=1000).rows()
    (named,) = (row for row in rows if row["deviates"])
    assert (named["host"], named["kind"], named["test"]) == ("h07", "block", "median")
    assert named["than"] == "own"
    assert 1.6 < named["ratio"] < 1.8
    assert 1.2 < named["value_ns"] / named["peers_ns"] < 1.4
    # One row per kind, from the stronger test.
    assert sum(row["host"] == "h07" for row in rows) == 2 * 3
    assert {row["than"] for row in rows if row["test"] == "tail"} == {"peers"}


def test_a_burst_is_one_event_not_hundreds(tmp_path: Path) -> None:
    """A host that stalled once for a second has as many slow operations as a bad one."""
    rng = np.random.default_rng(3)
    maker = LakeMaker(tmp_path)
    for number in range(24):
        ts = T0 + rng.integers(20 * SECOND, size=2000)
        dur = rng.lognormal(12, 0.7, 2000).astype(np.int64)
        if number == 1:
            dur[(ts >= T0 + 5 * SECOND) & (ts < T0 + 6 * SECOND)] *= 40
        if number == 2:
            dur[rng.random(2000) < 0.05] *= 40
        maker.push(Pushed(f"h{number:02}", [Operations("block", "read", ts, dur)]))
    rows = fleet.open(str(tmp_path)).query("deviations", all=True).rows()
    tails = {row["host"]: row for row in rows if row["test"] == "tail"}
    assert tails["h02"]["deviates"]
    assert not tails["h01"]["deviates"]
    assert tails["h01"]["ratio"] > 4
    assert tails["h01"]["burst"] > 20


def test_devices_and_groups_deviate(small: fleet.Fleet, tmp_path: Path) -> None:
    rows = small.query("deviations", by="device").rows()
    assert {(row["host"], row["key"]) for row in rows} == {
        (host, device) for host in (BAD_TAIL, BAD_MEDIAN) for device in ("sda", "sdb")
    }
    rng = np.random.default_rng(4)
    maker = LakeMaker(tmp_path)
    for number in range(24):
        ts = T0 + rng.integers(9 * SECOND, size=500)
        dur = rng.lognormal(12 + 0.5 * (number < 8), 0.5, 500).astype(np.int64)
        labels = {"version": "2" if number < 8 else "1", "rack": f"r{number % 3}"}
        maker.push(Pushed(f"h{number:02}", [Operations("block", "read", ts, dur)], labels=labels))
    lake = fleet.open(str(tmp_path))
    found = lake.query("deviations", by="version").rows()
    assert [(row["label"], row["test"]) for row in found] == [("2", "median")]
    assert 1.4 < found[0]["ratio"] < 2
    assert lake.query("deviations", by="rack").rows() == []
    assert lake.query("deviations").rows() == []
    assert lake.query("deviations", within="version", all=True).table.num_rows == 48


def test_a_shift_is_dated_to_its_second(small: fleet.Fleet) -> None:
    answer = small.query("shift", label="rack", kind="block")
    assert [(row["label"], row["since_ts"]) for row in answer.rows()] == [
        ("r2", T0 + SHIFT_FROM * SECOND)
    ]
    row = answer.rows()[0]
    assert 1.7 < row["ratio"] < 2.3
    assert (row["hosts"], row["moved"]) == (8, 8)
    rows = small.query("shift", label="rack", all=True).rows()
    assert {row["label"] for row in rows if row["shifted"] is False} >= {"r0", "r1"}
    assert rows[0]["bins_before"] + rows[0]["bins_after"] == SECONDS


def test_a_rollout_is_judged_over_hosts(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    maker = LakeMaker(tmp_path)
    for number in range(16):
        ts = np.sort(T0 + rng.integers(20 * SECOND, size=6000))
        level = rng.lognormal(12, 0.1)
        dur = (level * rng.lognormal(0, 0.5, 6000)).astype(np.int64)
        dur[ts >= T0 + 10 * SECOND] = dur[ts >= T0 + 10 * SECOND] * 13 // 10
        labels = {"version": "2" if number < 5 else "1"}
        maker.push(Pushed(f"h{number:02}", [Operations("io", "read", ts, dur)], labels=labels))
    lake = fleet.open(str(tmp_path))
    rows = {row["measure"]: row for row in lake.query("rollout", at=T0 + 10 * SECOND).rows()}
    assert rows["p50"]["verdict"] == rows["p99"]["verdict"] == "worse"
    assert rows["p50"]["ratio_low"] < 1.3 < rows["p50"]["ratio_high"]
    assert rows["rate"]["verdict"] == "no difference seen"
    assert rows["p50"]["hosts_before"] == rows["p50"]["hosts_after"] == 16
    label = lake.query("rollout", label="version", value="2").rows()
    assert {row["verdict"] for row in label} <= {"no difference seen", "cannot tell"}
    assert {(row["hosts_before"], row["hosts_after"]) for row in label} == {(11, 5)}
    two = fleet.open(str(tmp_path), hosts="h0[45]").query("rollout", label="version", value="2")
    assert {(row["verdict"], row["q"]) for row in two.rows()} == {("cannot tell", None)}
    groups = fleet.open(str(tmp_path), hosts="h0[0-6]").query("deviations", by="version", all=True)
    assert {(row["deviates"], row["p"]) for row in groups.rows()} == {(None, None)}
    with pytest.raises(whyslow.QueryError, match="needs `at`"):
        lake.query("rollout")


def test_verdicts_and_culprits_count_hosts_and_lead_further(small: fleet.Fleet) -> None:
    answer = small.query("verdicts")
    rows = {row["mechanism"]: row for row in answer.rows()}
    assert rows["device_slow"]["hosts"] == 12
    assert rows["device_slow"]["hosts_of"] == 25
    # Host 7 was pushed twice, with the same verdict.
    assert rows["device_slow"]["verdicts"] == 12
    assert rows["device_slow"]["blamed_ns"] == sum(4_000_000 + n for n in range(1, 24, 2))
    assert rows["runqueue"]["hosts"] == 11
    assert rows["runqueue"]["unsure"] == 1
    assert rows["runqueue"]["blamed_ns"] is None
    assert any("no verdict on 2 hosts" in caveat for caveat in answer.caveats)
    further = small.recording(rows["device_slow"])
    assert further["host"] == "web-23"
    assert further["command"].startswith("whyslow explain /var/lib/")
    assert further["command"].endswith(" -w op:23")
    culprits = small.query("culprits").rows()
    assert sum(row["verdicts"] for row in culprits) == 12
    assert {row["object"] for row in culprits} == {None, HOSTILE}


def test_hosts_slowest_and_heat(small: fleet.Fleet) -> None:
    rows = {row["host"]: row for row in small.query("hosts").rows()}
    assert len(rows) == 25
    assert rows["web-07"]["recordings"] == 2
    assert rows["web-07"]["covered_ns"] == SECONDS * SECOND
    assert rows["web-06"]["lost_events"] == 7
    assert "dns" in rows["web-00"]["missing"]
    slowest = small.query("slowest", limit=5).rows()
    assert [row["dur"] for row in slowest] == sorted((row["dur"] for row in slowest), reverse=True)
    assert len({row["id"] for row in small.query("slowest").rows()}) == 24
    heat = small.query("heat", kind="block", bin="4s").rows()
    assert len(heat) == 24 * SECONDS // 4
    counts = small.query("percentiles", kind="block").rows()
    assert sum(row["operations"] for row in heat) == counts[0]["operations"]


def test_what_a_host_lacks_none_of_its_recordings_has(tmp_path: Path) -> None:
    maker = LakeMaker(tmp_path)
    ts = np.array([T0])
    for number, kinds in enumerate((KINDS[:2], KINDS[2:5], KINDS[:1])):
        operations = [Operations(kind, "", ts + number * SECOND, ts * 0 + 5) for kind in kinds]
        maker.push(Pushed("a", operations, ts=T0 + number * SECOND, dur=SECOND))
    maker.push(Pushed("b", [Operations(kind, "", ts, ts * 0 + 5) for kind in KINDS]))
    maker.push(Pushed("c"))
    rows = fleet.open(str(tmp_path)).query("hosts").rows()
    assert [row["missing"] for row in rows] == ["mem,dns,requests", "", ",".join(KINDS)]
    last = fleet.open(str(tmp_path), window=(T0 + 2 * SECOND, T0 + 3 * SECOND), hosts="a")
    assert last.query("hosts").rows()[0]["missing"] == ",".join(KINDS[1:])


def test_the_slowest_of_a_window_begin_in_it(small: fleet.Fleet) -> None:
    everything = small.query("slowest").rows()
    first, *_, last = sorted(row["ts"] for row in everything)
    for begin, end in ((first, last), (first + 1, last), (first, last + 1), (None, first + 1)):
        found = fleet.open(small._store.url, window=(begin, end)).query("slowest").rows()
        assert found == [
            row for row in everything if (begin is None or row["ts"] >= begin) and row["ts"] < end
        ]


def test_answers_say_what_they_cannot_tell(small: fleet.Fleet) -> None:
    answer = small.query("percentiles")
    lost = answer.facts["lost"]
    assert (lost["events"], lost["end_ns"] - lost["begin_ns"]) == (7, SECONDS * SECOND)
    assert small.query("percentiles", kind="io").facts["lost"] == lost
    caveats = answer.caveats
    assert any("1 of 25 hosts lost events (at least 7)" in caveat for caveat in caveats)
    assert any("`dns` unavailable on 24 of 25 hosts" in caveat for caveat in caveats)
    only = small.query("percentiles", kind="mem").caveats
    assert "`mem` unavailable: not recorded on any host" in only


def test_a_class_that_nothing_has_is_told(small: fleet.Fleet) -> None:
    for name in ("percentiles", "slowest", "heat"):
        answer = small.query(name, kind="block", op="raed")
        assert answer.rows() == []
        (caveat,) = (caveat for caveat in answer.caveats if "raed" in caveat)
        assert caveat == "no operation of `block` has class `raed`; classes: `read`"
    # The class exists, and nothing deviates.
    sda = small.query("deviations", by="device", key="sdc", op="read")
    assert sda.rows() == []
    assert not any("class" in caveat for caveat in sda.caveats)
    # A known kind that was not recorded: no error, but a caveat.
    answer = small.query("percentiles", kind="mem", op="direct")
    assert not any("class" in caveat for caveat in answer.caveats)
    assert "`mem` unavailable: not recorded on any host" in answer.caveats


def test_kinds_and_dimensions_are_those_of_the_program() -> None:
    source = (ROOT / "crates/whyslow-fleet/src/tables/rollup.rs").read_text()
    text = re.sub(r"\n */// ", " ", source)
    kinds = re.sub(r" \([^)]*\)", "", re.findall(r"Kind of operation: (.+?)\.\n", text)[0])
    assert tuple(kinds.split(", ")) == KINDS
    dimensions = re.sub(r" \([^)]*\)", "", re.findall(r" all; (.+?)\.", text)[0])
    assert set(dimensions.split(", ")) == set(DIMENSIONS)


def test_ones_own_sql_reads_tables_and_steps_and_nothing_else(
    small: fleet.Fleet, tmp_path: Path
) -> None:
    answer = small.sql("SELECT victim FROM verdict WHERE host = 'web-01'")
    assert answer.rows() == [{"victim": HOSTILE}]
    counted = small.sql("SELECT SUM(count) AS n, MIN(ts) AS ts FROM operation WHERE kind = 'dns'")
    assert counted.rows() == [{"n": 10, "ts": T0}]
    assert counted.measures == {"n": "Count", "ts": "Time"}
    (tmp_path / "x.csv").write_text("a\n1\n")
    for statement in (
        f"SELECT a FROM read_csv('{tmp_path}/x.csv')",
        f"COPY (SELECT 1 AS a) TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT nonsense FROM rollup",
        "SELECT getenv('HOME') AS home",
    ):
        with pytest.raises(whyslow.QueryError, match="DuckDB rejected"):
            small.sql(statement)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the statement is empty"),
        (" ;\n-- SELECT 1\n", "the statement is empty"),
        ("/* SELECT\n1 */", "the statement is empty"),
        ("SELECT 1 AS a; SELECT 2 AS b", "expected one statement, got 2"),
        (
            "SELECT r.host, l.host FROM recording AS r CROSS JOIN label AS l",
            "duplicate column name `host`",
        ),
        (
            "SELECT CAST(18446744073709551615 AS UBIGINT) AS x",
            "column `x` has integers beyond",
        ),
        ("SELECT SUM(ts) * 10000000000 AS x FROM rollup", "column `x` has integers beyond"),
        ("SELECT FROM WHERE", "DuckDB rejected"),
    ],
)
def test_statements_that_have_no_answer_are_errors(
    small: fleet.Fleet, text: str, message: str
) -> None:
    with pytest.raises(whyslow.QueryError, match=message):
        small.sql(text)


def test_statements_may_end_and_have_comments(small: fleet.Fleet) -> None:
    for text in ("SELECT 1 AS a;", "-- one\nSELECT 1 AS a -- ;\n;", "SELECT '--' AS a"):
        assert small.sql(text).table.num_rows == 1
    small_ones = small.sql("SELECT CAST(5 AS UBIGINT) AS x, CAST(7 AS HUGEINT) AS n")
    assert str(small_ones.table.schema.types) == "[DataType(int64), DataType(int64)]"


@pytest.mark.parametrize(
    "path", ["docs/fleet-queries.md", "python/README.md", "python/src/whyslow/fleet/__init__.py"]
)
def test_statements_in_docs_count_each_operation_once(small: fleet.Fleet, path: str) -> None:
    (text,) = re.findall(r'\.sql\("(SELECT .* FROM operation .*)"\)', (ROOT / path).read_text())
    counted = "SELECT host, SUM(count) AS n FROM rollup WHERE dimension = 'all' GROUP BY host"
    if "'io'" in text:
        text = text.replace("'io'", "'block'")
        counted = counted.replace(" GROUP", " AND kind = 'block' GROUP")
    found = {row["host"]: row["n"] for row in small.sql(text).rows()}
    wanted = {row["host"]: row["n"] for row in small.sql(counted).rows()}
    # This host has two recordings of the same seconds.
    assert found.pop("web-07") * 2 == wanted.pop("web-07")
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("nonsense", {}, "unknown fleet query"),
        ("verdicts", {"kind": "io"}, "has no parameter `kind`"),
        ("percentiles", {"limit": "many"}, "must be an integer"),
        ("percentiles", {"limit": 0}, "must be at least 1"),
        ("deviations", {"by": "rock"}, "no host has a label `rock`"),
        ("deviations", {"all": "perhaps"}, "must be true or false"),
        ("heat", {"bin": "long"}, "must be a duration"),
        ("rollout", {"at": "noon"}, "must be a time"),
        ("percentiles", {"label": HOSTILE}, "no host has a label"),
        ("heat", {"bin": "100ms"}, "must be a whole number of seconds"),
        ("shift", {"bin": "1500ms"}, "must be a whole number of seconds"),
        ("shift", {"bin": 1}, "must be a whole number of seconds"),
        ("rollout", {}, "needs `at`, or `label` and `value`"),
        ("rollout", {"label": "rack"}, "needs `at`, or `label` and `value`"),
        ("rollout", {"at": T0 + SECOND, "label": "rack", "value": "r1"}, "not both"),
        ("rollout", {"at": T0 + SECOND, "value": "r1"}, "not both"),
        ("rollout", {"at": T0}, "no recordings on one side of 2026-03-01T12:00:00"),
        ("rollout", {"at": "2026-03-01T12:00:15.5Z"}, "no recordings on one side"),
        ("rollout", {"at": T0 + SECOND, "least": 1}, "must be a ratio above 1"),
        ("rollout", {"at": T0 + SECOND, "least": "nan"}, "must be a ratio above 1"),
        ("percentiles", {"kind": "IO"}, "unknown kind `IO`"),
        ("slowest", {"kind": "foo"}, "unknown kind `foo`"),
        ("percentiles", {"dimension": "devices"}, "unknown dimension `devices`"),
        (
            "rollout",
            {"label": "rack", "value": "r9"},
            "no host has the label `rack` with value `r9`",
        ),
    ],
)
def test_wrong_questions_are_errors_with_hints(
    small: fleet.Fleet, name: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(whyslow.QueryError, match=message) as caught:
        small.query(name, **parameters)
    assert caught.value.hint or "must be" in str(caught.value)


def test_a_moment_has_to_be_within_the_window(small: fleet.Fleet) -> None:
    lake = fleet.open(small._store.url, window=(T0 + 4 * SECOND, T0 + 8 * SECOND))
    assert lake.query("rollout", at=T0 + 6 * SECOND).rows()
    for second in (3, 4, 8):
        with pytest.raises(whyslow.QueryError, match="no recordings on one side") as caught:
            lake.query("rollout", at=T0 + second * SECOND)
        hint = str(caught.value.hint)
        assert "from 2026-03-01T12:00:04" in hint
        assert "to 2026-03-01T12:00:08" in hint


def test_hostile_values_of_parameters_are_values(small: fleet.Fleet) -> None:
    assert small.query("percentiles", key=HOSTILE).rows() == []
    with pytest.raises(whyslow.QueryError, match="unknown kind"):
        small.query("percentiles", kind=HOSTILE)
    named = small.query("percentiles", dimension="name", key=HOSTILE).rows()
    assert [(row["key"], row["operations"]) for row in named] == [(HOSTILE, 5)]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_headers_document_every_column(path: Path, small: fleet.Fleet) -> None:
    text = path.read_text()
    query = parse(path.stem, text)
    documented = [column.name for column in query.columns]
    if path.parent.name == "fleet":
        how = {"by": "rack"} if path.stem.endswith("_of_groups") else {}
        if path.stem == "rollout":
            how = {"at": "2026-03-01T12:00:05Z"}
        columns = small.query(path.stem.removesuffix("_of_groups"), **how).table.column_names
    else:
        columns = re.findall(
            r"(\w+)(?:,|$)", text[text.rindex("\nSELECT") : text.rindex("FROM")], re.M
        )
        assert set(documented) >= {name for name in columns if name in documented}
        assert documented
        return
    assert sorted(columns) == sorted(documented)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_are_portable(path: Path) -> None:
    code = re.sub(r"--.*", "", path.read_text()).lower()
    for word in ("unnest", "qualify", "asof", "lateral", "approx_", "quantile", "median(", "%"):
        assert word not in re.sub(r"'[^']*'", "", code), word
    assert not re.search(r"\bfilter\s*\(|select\s+\*|\blimit\b|::", code)
    # Engines give a literal with a decimal point and no exponent different types.
    assert not re.search(r"[\s(]\d+\.\d+", code)
