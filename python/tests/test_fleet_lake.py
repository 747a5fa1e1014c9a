"""Selection of recordings of a lake, and reading its files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from lakes import SECOND, T0, LakeMaker, Operations, Pushed, buckets_of, day_of

import whyslow
from whyslow import fleet
from whyslow.fleet.contract import SCHEMAS

DAY = 86_400 * SECOND


def some(count: int = 10, ts: int = T0, seed: int = 1) -> list[Operations]:
    rng = np.random.default_rng(seed)
    times = ts + rng.integers(5 * SECOND, size=count)
    return [Operations("io", "read", times, rng.integers(1_000, 10**9, count))]


def operations(lake: fleet.Fleet) -> int:
    return sum(row["operations"] for row in lake.query("percentiles").rows())


@pytest.fixture
def maker(tmp_path: Path) -> LakeMaker:
    return LakeMaker(tmp_path / "lake")


def opened(maker: LakeMaker, **how: object) -> fleet.Fleet:
    return fleet.open(str(maker.path), **how)  # type: ignore[arg-type]


def test_what_is_not_committed_is_not_there(maker: LakeMaker) -> None:
    maker.push(Pushed("a", some()))
    maker.push(Pushed("b", some()), commit=False)
    assert opened(maker).hosts == ["a"]
    assert operations(opened(maker)) == 10


def test_a_file_without_which_a_commit_is_none_is_an_error(maker: LakeMaker) -> None:
    rec = maker.push(Pushed("a", some()))
    next(maker.path.glob(f"v1/rollup/*/*/a.{rec}.parquet")).unlink()
    with pytest.raises(whyslow.LakeError, match="is missing, although its commit exists") as caught:
        opened(maker).query("percentiles")
    assert "push the recording again, with --replace" in str(caught.value.hint)


@pytest.mark.parametrize("damage", ["short", "flipped", "empty"])
def test_a_damaged_file_is_an_error(maker: LakeMaker, damage: str) -> None:
    rec = maker.push(Pushed("a", some()))
    place = maker.compact([("b", maker.push(Pushed("b", some())))])
    for name, remedy in ((f"a.{rec}", "--replace"), (place, "from a copy of the lake")):
        file = next(maker.path.glob(f"v1/histogram/*/*/{name}.parquet"))
        good = file.read_bytes()
        flipped = bytearray(good)
        flipped[10 : len(flipped) // 2] = bytes(len(flipped) // 2 - 10)
        file.write_bytes({"short": good[:-20], "flipped": bytes(flipped), "empty": b""}[damage])
        with pytest.raises(whyslow.LakeError, match="is damaged") as caught:
            opened(maker).query("percentiles")
        assert remedy in str(caught.value.hint)
        file.write_bytes(good)


def test_a_file_that_the_disk_does_not_give_is_not_damaged(
    maker: LakeMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker.push(Pushed("a", some()))
    lake = opened(maker)
    for failure in (OSError(5, "Input/output error"), OSError("AWS Error NETWORK_CONNECTION")):

        def fail(*_: object, failure: OSError = failure) -> None:
            raise failure

        monkeypatch.setattr("whyslow.fleet.reader._decoded", fail)
        with pytest.raises(whyslow.LakeError, match="failed to read") as caught:
            lake.query("percentiles")
        assert "retry" in str(caught.value.hint)


def test_what_files_lack_of_their_commits_is_an_error(maker: LakeMaker) -> None:
    rec = maker.push(Pushed("a", some()))
    other = maker.push(Pushed("a", some(), ts=T0 + SECOND))
    table = next(maker.path.glob(f"v1/recording/*/*/a.{rec}.parquet"))
    table.write_bytes(next(maker.path.glob(f"v1/recording/*/*/a.{other}.parquet")).read_bytes())
    with pytest.raises(whyslow.LakeError, match="that are missing in its files") as caught:
        opened(maker)
    assert "--replace" in str(caught.value.hint)


def test_a_commit_that_is_gone_meanwhile_is_an_error(
    maker: LakeMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker.compact([("a", maker.push(Pushed("a", some())))])

    def gone(_: object, name: str) -> None:
        raise FileNotFoundError(name)

    monkeypatch.setattr("whyslow.fleet.store.Store.read", gone)
    with pytest.raises(whyslow.LakeError, match="disappeared") as caught:
        opened(maker)
    assert "retry" in str(caught.value.hint)


def test_hosts_clusters_and_days_prune_files(maker: LakeMaker) -> None:
    for number in range(6):
        ts = T0 + (number // 2) * 3 * DAY
        cluster = "prod" if number % 2 else "test"
        maker.push(Pushed(f"web-{number}", some(ts=ts), ts=ts, cluster=cluster))
    everything = opened(maker).query("percentiles").facts
    # For each recording the tables recording, label, rollup and histogram.
    assert everything["files"] == 24
    assert everything["recordings_left_out"] == 0
    one = opened(maker, hosts="web-4").query("percentiles").facts
    assert (one["files"], one["recordings"], one["recordings_left_out"]) == (4, 1, 5)
    assert opened(maker, hosts=["web-0", "web-[12]"]).hosts == ["web-0", "web-1", "web-2"]
    assert opened(maker, cluster="pro*").hosts == ["web-1", "web-3", "web-5"]
    early = opened(maker, window=(T0, T0 + SECOND)).query("percentiles").facts
    assert (early["files"], early["recordings"]) == (8, 2)
    # For a window that starts later, the day before it is also examined.
    late = opened(maker, window=(T0 + 3 * DAY, T0 + 4 * DAY))
    assert late.hosts == ["web-2", "web-3"]


def test_kinds_prune_what_is_read_of_a_large_file(
    maker: LakeMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    ts = T0 + rng.integers(500 * SECOND, size=400_000)
    dur = rng.lognormal(12, 2, 400_000).astype(np.int64)
    kinds = [Operations(kind, "", ts, dur) for kind in ("block", "io")]
    maker.push(Pushed("a", [*kinds, Operations("sched", "", ts[:500], dur[:500])]))
    whole = opened(maker).query("percentiles", kind="sched")
    monkeypatch.setattr("whyslow.fleet.reader._WHOLE_BYTES", 1000)
    pruned = opened(maker).query("percentiles", kind="sched")
    assert pruned.table == whole.table
    assert pruned.facts["bytes_read"] * 2 < whole.facts["bytes_read"]
    # Also if no part of a file is needed.
    assert opened(maker).query("percentiles", kind="dns").rows() == []
    everything = opened(maker).query("percentiles")
    assert everything.rows()[0]["operations"] == 400_000


def test_a_window_counts_whole_seconds(maker: LakeMaker) -> None:
    ts = T0 + np.arange(4) * SECOND
    maker.push(Pushed("a", [Operations("io", "read", ts, np.array([10, 20, 30, 40]))]))
    row = opened(maker, window=(T0 + SECOND + 5, T0 + 2 * SECOND + 5)).query("percentiles").rows()
    assert [(one["operations"], one["dur_total_ns"]) for one in row] == [(2, 50)]
    with pytest.raises(whyslow.QueryError, match="no recordings in the lake match"):
        opened(maker, window=(T0 - 2 * SECOND, T0))


def test_seconds_that_two_recordings_saw_count_once(maker: LakeMaker) -> None:
    ts = T0 + np.arange(10) * SECOND
    all_of_them = Operations("io", "read", ts, np.arange(10) + 100)
    # The first has seconds 0 to 6, the second 4 to 9 and covers second 6 better.
    first = Operations("io", "read", ts[:7], all_of_them.dur[:7])
    second = Operations("io", "read", ts[4:], all_of_them.dur[4:])
    length = 6 * SECOND + SECOND // 4
    a = maker.push(Pushed("a", [first], dur=length))
    b = maker.push(Pushed("a", [second], ts=T0 + 4 * SECOND, dur=6 * SECOND))
    lake = opened(maker)
    assert operations(lake) == 10
    chosen = lake.sql("SELECT ts, recording FROM counted ORDER BY ts").rows()
    assert [row["recording"] for row in chosen] == [a] * 6 + [b] * 4
    row = lake.query("percentiles").rows()[0]
    assert (row["dur_min_ns"], row["dur_p50_ns"], row["dur_max_ns"]) == (100, 104, 109)


def test_recordings_one_after_the_other_both_count_in_the_second_they_share(
    maker: LakeMaker,
) -> None:
    rng = np.random.default_rng(1)
    half = SECOND // 2

    def between(begin: int, end: int, count: int) -> Operations:
        ts = T0 + rng.integers(begin, end, count)
        return Operations("io", "read", ts, rng.integers(1_000, 10**6, count))

    def push(begin: int, end: int, count: int, *more: Operations) -> str:
        one = [between(begin, end, count), *more]
        return maker.push(Pushed("a", one, ts=T0 + begin, dur=end - begin))

    push(0, SECOND + half, 150)
    # It has one operation that was already in progress, which the first one has as well.
    in_progress = Operations("io", "read", np.array([T0 + half]), np.array([2 * SECOND]))
    push(SECOND + half, 3 * SECOND, 160, in_progress)
    lake = opened(maker)
    assert operations(lake) == 310
    rows = lake.sql("SELECT ts, place FROM counted ORDER BY ts, place").rows()
    assert [(row["ts"] - T0) // SECOND for row in rows] == [0, 1, 1, 2]
    assert [row["place"] for row in rows] == [1, 1, 2, 1]
    assert lake.query("hosts").rows()[0]["covered_ns"] == 3 * SECOND
    # Of several in one second, those that do not overlap earlier ones in the order count.
    short = SECOND // 10
    for begin in (0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9):
        push(9 * SECOND + begin * short, 9 * SECOND + (begin + 1) * short, 10)
    assert operations(opened(maker)) == 410
    push(9 * SECOND, 10 * SECOND, 7)
    assert operations(opened(maker)) == 317


def test_a_second_of_two_recordings_is_one_row_of_an_answer(maker: LakeMaker) -> None:
    rng = np.random.default_rng(2)
    split = T0 + SECOND // 2
    for number in range(8):
        ts = T0 + rng.integers(2 * SECOND, size=2000)
        dur = rng.lognormal(12 + (number == 3), 0.5, 2000).astype(np.int64)
        begin, middle = T0, split
        for first, last in ((begin, middle), (middle, T0 + 2 * SECOND)):
            chosen = (ts >= first) & (ts < last)
            one = [Operations("block", "read", ts[chosen], dur[chosen])]
            labels = {"rack": f"r{number % 2}"}
            maker.push(Pushed(f"h{number}", one, ts=first, dur=last - first, labels=labels))
    lake = opened(maker)
    rows = lake.query("deviations", all=True).rows()
    assert len(rows) == 16
    assert all(row["operations"] == 2000 for row in rows)
    assert lake.query("deviations", by="rack", all=True).table.num_rows == 4
    (rate,) = (
        row
        for row in lake.query("rollout", label="rack", value="r1").rows()
        if row["measure"] == "rate"
    )
    assert rate["before"] == pytest.approx(1000, rel=1e-4)


def test_of_two_recordings_the_one_that_recorded_a_kind_counts(maker: LakeMaker) -> None:
    ts = T0 + np.arange(4) * SECOND
    maker.push(Pushed("a", [Operations("io", "read", ts, ts * 0 + 5)], dur=10 * SECOND))
    maker.push(Pushed("a", [Operations("block", "read", ts, ts * 0 + 7)], dur=4 * SECOND))
    rows = opened(maker).query("percentiles").rows()
    assert {row["kind"]: row["operations"] for row in rows} == {"io": 4, "block": 4}


def test_compactions_take_the_place_of_files(maker: LakeMaker) -> None:
    keys = []
    for number in range(6):
        host = f"web-{number}"
        keys.append((host, maker.push(Pushed(host, some(seed=number)))))
    before = opened(maker).query("percentiles")
    small = maker.compact(keys[:2], delete=True)
    maker.compact(keys[2:4])
    after = opened(maker).query("percentiles")
    assert after.table.equals(before.table)
    # Two compactions and two single recordings, and the two commits of the compactions.
    assert after.facts["files"] == 4 * 4 + 2
    # Some recordings of a compaction.
    assert operations(opened(maker, hosts="web-[034]")) == 30
    # A later compaction replaces the first, and includes another recording.
    folder = maker.path / "v1"
    for file in folder.glob(f"*/*/*/{small}.parquet"):
        (file.parent / f"web-0.{keys[0][1]}.parquet").write_bytes(file.read_bytes())
    again = maker.compact([keys[0], keys[4]], replaces=[small])
    lake = opened(maker, hosts="web-4")
    assert operations(lake) == 10
    assert again in str(lake._selection.parts("rollup")[0].file)


def test_a_recording_in_two_places_counts_once(maker: LakeMaker) -> None:
    rec = maker.push(Pushed("a", some(), cluster="x"))
    maker.push(Pushed("a", some(), cluster="y", recording=rec))
    answer = opened(maker).query("percentiles")
    assert sum(row["operations"] for row in answer.rows()) == 10
    assert any("more than one place" in caveat for caveat in answer.caveats)


def test_each_table_is_read_where_a_recording_has_it(maker: LakeMaker) -> None:
    def raw(rec: str, host: str, cluster: str) -> None:
        where = f"dt={day_of(T0)}/cluster={cluster}/{host}.{rec}.parquet"
        file = maker.path / "v1" / "sched_slice" / where
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = {"recording": [rec] * 3, "host": [host] * 3, "ts": [T0] * 3, "dur": [5] * 3}
        pq.write_table(pa.table(rows), file)

    count = "SELECT COUNT(*) AS n FROM sched_slice"
    first = maker.push(Pushed("a", some(), cluster="x"))
    maker.push(Pushed("b", some(), cluster="x"))
    maker.push(Pushed("a", some(), cluster="y", recording=first))
    raw(first, "a", "y")
    assert opened(maker).sql(count).rows() == [{"n": 3}]
    with pytest.raises(whyslow.QueryError, match="sched_slice") as caught:
        opened(maker, hosts="b").sql(count)
    assert "--raw" in str(caught.value.hint)
    # The same with a compaction without the table.
    maker.compact([("a", first)], cluster="x", delete=True)
    assert opened(maker).sql(count).rows() == [{"n": 3}]


def test_hosts_of_one_name_in_several_clusters_are_told(maker: LakeMaker) -> None:
    for number, cluster in enumerate(("x", "x", "y")):
        maker.push(Pushed("a", some(ts=T0 + number * 5 * SECOND), cluster=cluster))
        maker.push(Pushed(f"b{number}", some(), cluster=cluster))
    for name in ("hosts", "percentiles", "verdicts"):
        answer = opened(maker).query(name)
        (caveat,) = (caveat for caveat in answer.caveats if "clusters" in caveat)
        assert caveat.startswith("1 host names are in several clusters")
        assert caveat.endswith("(a)")
        assert "--cluster" in caveat
    assert any("clusters" in caveat for caveat in opened(maker).sql("SELECT 1 AS n").caveats)
    for how in ({"cluster": "x"}, {"hosts": "b*"}):
        assert not any(
            "clusters" in caveat for caveat in opened(maker, **how).query("hosts").caveats
        )


def test_no_lake_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(whyslow.LakeError, match="nothing` does not exist") as caught:
        fleet.open(str(tmp_path / "nothing"))
    assert "whyslow fleet push" in str(caught.value.hint)
    (tmp_path / "empty").mkdir()
    with pytest.raises(whyslow.LakeError, match="no recordings in the lake") as caught:
        fleet.open(str(tmp_path / "empty"))
    assert "whyslow fleet push" in str(caught.value.hint)
    (tmp_path / "web.wsl").mkdir()
    (tmp_path / "web.wsl" / "manifest.json").write_text("{}")
    (tmp_path / "web.wsl.tar.zst").write_text("")
    for name, what in (("web.wsl", "recording"), ("web.wsl.tar.zst", "file")):
        with pytest.raises(whyslow.LakeError, match=f"is a {what}, not a lake") as caught:
            fleet.open(str(tmp_path / name))
        assert f"whyslow fleet hosts {tmp_path / name}" in str(caught.value.hint)
    (tmp_path / "later" / "v9").mkdir(parents=True)
    with pytest.raises(whyslow.LakeError, match="another layout"):
        fleet.open(str(tmp_path / "later"))
    for url in ("ftp://x/y", "s3://", "file://elsewhere/x", ""):
        with pytest.raises(whyslow.LakeError) as caught:
            fleet.open(url)
        assert caught.value.hint, url
    with pytest.raises(whyslow.QueryError, match="unknown engine") as caught_engine:
        fleet.open(str(tmp_path), engine="trino://x")
    assert "duckdb" in str(caught_engine.value.hint)


def test_a_lake_of_which_all_expired_has_no_recording(maker: LakeMaker) -> None:
    maker.push(Pushed("a", some()))
    for file in maker.path.rglob("*.*"):
        if file.is_file():
            file.unlink()
    for how in ({}, {"hosts": "a"}):
        with pytest.raises(whyslow.LakeError, match="no recordings in the lake") as caught:
            opened(maker, **how)
        assert "whyslow fleet push" in str(caught.value.hint)


def test_objects_that_are_no_commits_are_passed_over_and_told(maker: LakeMaker) -> None:
    maker.push(Pushed("a", some()))
    folder = next(maker.path.glob("v1/_commits/dt=*/cluster=default"))
    (folder / "README.txt").write_text("hello")
    (folder / "no-ulid.json").write_text("{}")
    answer = opened(maker).query("hosts")
    assert answer.table.num_rows == 1
    assert any("2 objects among the commits" in caveat for caveat in answer.caveats)
    (folder / "@01ARZ3NDEKTSV4RRFFQ69G5FAV.json").write_text('{"recordings": [}')
    with pytest.raises(whyslow.LakeError, match="is damaged"):
        opened(maker)


def test_too_much_for_the_memory_is_an_error_with_a_hint(maker: LakeMaker) -> None:
    rng = np.random.default_rng(1)
    ts = T0 + rng.integers(60 * SECOND, size=200_000)
    maker.push(Pushed("a", [Operations("io", "read", ts, rng.integers(1, 10**12, 200_000))]))
    with pytest.raises(whyslow.QueryError, match="invalid memory size"):
        opened(maker, memory="much").query("percentiles")
    with pytest.raises(whyslow.LakeError, match="exceed") as caught:
        opened(maker, memory="1MiB").query("percentiles")
    assert "--memory" in str(caught.value.hint)


def test_the_contract_is_that_of_the_program() -> None:
    kinds = {"String": "string", "i64": "int64", "i32": "int32", "f64": "double", "bool": "bool"}
    found = {}
    for file in (ROOT / "crates/whyslow-fleet/src/tables").glob("*.rs"):
        table = re.search(r'Row = "(\w+)"', file.read_text())
        if table is None:
            continue
        rows = re.findall(r"^ {8}(\w+): (Option<)?(\w+)>?[ ,]", file.read_text(), re.M)
        found[table[1]] = [(name, kinds[kind], bool(null)) for name, null, kind in rows]
    assert found == {
        table: [(column.name, str(column.type), column.nullable) for column in schema]
        for table, schema in SCHEMAS.items()
    }


def test_buckets_are_those_of_the_program() -> None:
    values = np.array([0, 1, 63, 64, 65, 66, 127, 128, 131, 132, 2**40 + 12345, 2**62])
    bucket, middle = buckets_of(values)
    assert bucket.tolist()[:10] == [0, 1, 63, 64, 64, 65, 95, 96, 96, 97]
    assert middle.tolist()[3:10] == [64, 64, 66, 126, 129, 129, 133]
    assert np.all(np.abs(middle - values) <= values * 0.016 + 1)
