"""Tables equal what DuckDB reads from the files directly."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from conftest import ROOT

import whyslow
from whyslow.times import is_time, moment_text, window_text, zone_name


def files_of(recording: whyslow.Recording, table: str) -> str:
    about = recording.tables[table]
    files = [str(recording.path / name) for name in (*about.files, *about.long_files)]
    return f"read_parquet({files!r})"


def test_every_table_has_the_rows_and_columns_of_its_files(web: whyslow.Recording) -> None:
    assert len(web.tables) >= 20
    for name, about in web.tables.items():
        table = web.table(name)
        ((count,),) = duckdb.sql(f"SELECT COUNT(*) FROM {files_of(web, name)}").fetchall()
        assert table.num_rows == count == about.rows, name
        columns = duckdb.sql(f"SELECT * FROM {files_of(web, name)} LIMIT 0").columns
        assert table.column_names == columns == web.schema(name).names, name


def test_cells_are_those_of_the_files(web: whyslow.Recording) -> None:
    for name in ("syscall", "block_io", "process", "trace_stat"):
        first = web.schema(name).names[0]
        key = "ts, id" if "ts" in web.schema(name).names else first
        rows = duckdb.sql(f"SELECT * FROM {files_of(web, name)} ORDER BY {key}").fetchall()
        assert [tuple(row.values()) for row in web.table(name).to_pylist()] == rows, name


def test_late_rows_are_in_their_place(web: whyslow.Recording) -> None:
    assert web.tables["syscall"].long_files
    # The sort keys are not among the selected columns.
    names = web.table("syscall", columns=["name", "fd"])
    rows = web.table("syscall", columns=["ts", "id", "name", "fd"]).to_pylist()
    assert [(row["ts"], row["id"]) for row in rows] == sorted(
        (row["ts"], row["id"]) for row in rows
    )
    assert names.to_pylist() == [{"name": row["name"], "fd": row["fd"]} for row in rows]


def test_tables_without_rows_have_their_columns(web: whyslow.Recording) -> None:
    empty = web.table("lost_events")
    assert empty.num_rows == 0
    assert empty.schema.field("ts").type == pa.int64()
    assert empty.schema.field("stream").type == pa.string()
    assert "count" in web.table("lost_events", columns=["count"]).column_names


@pytest.mark.parametrize("table", ["syscall", "fd_life", "wakeup", "block_io", "irq"])
def test_a_window_keeps_what_overlaps_it(web: whyslow.Recording, table: str) -> None:
    middle = (web.begin_ns + web.end_ns) // 2
    for begin, end in (
        (middle, middle + 300_000_000),
        (None, web.begin_ns + 1),
        (web.end_ns, None),
        (None, None),
        (web.end_ns + 1, web.end_ns + 2),
        (-(2**63), 2**63 - 1),
    ):
        low = -(2**63) if begin is None else begin
        high = 2**63 - 1 if end is None else end
        has_end = "ts_end" in web.schema(table).names
        condition = f"ts < {high} AND " + (
            f"(ts_end IS NULL OR ts_end > {low} OR (ts_end = ts AND ts >= {low}))"
            if has_end
            else f"ts >= {low}"
        )
        rows = duckdb.sql(
            f"SELECT id FROM {files_of(web, table)} WHERE {condition} ORDER BY ts, id"
        ).fetchall()
        got = web.table(table, columns=["id"], window=(begin, end))
        assert [(id_,) for id_ in got.column("id").to_pylist()] == rows


def test_a_window_keeps_what_the_program_keeps(web: whyslow.Recording) -> None:
    middle = (web.begin_ns + web.end_ns) // 2
    window = (middle, middle + 500_000_000)
    log = web.block.log(window=window)["log"]
    ids = web.table("block_io", columns=["id"], window=window).column("id").to_pylist()
    assert sorted(log.column("id").to_pylist()) == sorted(f"block:{id_}" for id_ in ids)


def test_windows_may_be_datetimes(lossy: whyslow.Recording) -> None:
    whole = lossy.table("syscall", window=(lossy.begin_ns, lossy.end_ns + 1))
    zone = timezone(timedelta(hours=-5, minutes=-30))
    begin = datetime(2015, 1, 15, 11, 48, 37, 200_000, zone)
    assert lossy.table("syscall", window=(begin, begin + timedelta(hours=1))) == whole
    assert whole.num_rows == 7
    with pytest.raises(whyslow.QueryError, match="has no time zone"):
        lossy.table("syscall", window=(begin.replace(tzinfo=None), None))


def test_what_cannot_be_asked_is_told(web: whyslow.Recording) -> None:
    for query, part in (
        (lambda: web.table("sycsall"), "tables: block_io"),
        (lambda: web.schema("sycsall"), "no table"),
        (lambda: web.table("syscall", columns=["tss"]), "columns: id, ts"),
        (lambda: web.table("syscall", columns="ts"), r"\['ts'\]"),
        (lambda: web.table("process", window=(0, 1)), "no time column"),
        (lambda: web.table("syscall", window=(2, 1)), "ends before it starts"),
        (lambda: web.table("syscall", window=7), "invalid window"),
        (lambda: web.table("syscall", window="op:1"), "invalid window"),
        (lambda: web.table("syscall", window=(1.5, 2)), "invalid time"),
    ):
        with pytest.raises(whyslow.QueryError, match=part):
            query()


def test_hostile_names_are_text(lossy: whyslow.Recording) -> None:
    paths = lossy.table("syscall", columns=["path"]).column("path").to_pylist()
    assert "/tmp/\x1b[2J\x1b]0;owned\x07" in paths
    assert "=cmd|' /C calc'!A0,💥\ufffd" in paths
    comms = lossy.table("syscall", columns=["comm"]).column("comm").to_pylist()
    assert "-c o'm\"m" in comms


@pytest.mark.parametrize(
    "name", ["o'[1]*.wsl", '"; DROP.wsl', "a\nb.wsl", "%s{x}?.wsl", "-q.wsl", "é💥.wsl"]
)
def test_hostile_names_of_recordings_are_names(make: Callable[..., Path], name: str) -> None:
    with whyslow.open(make(name)) as recording:
        assert recording.table("syscall").num_rows == 7
        assert recording.sql("SELECT COUNT(*) AS n FROM syscall").fetchall() == [(7,)]
        assert recording.io.stats().recording


def test_a_name_that_is_not_utf_8_is_a_name(make: Callable[..., Path]) -> None:
    path = make("plain.wsl")
    odd = path.rename(path.with_name("odd-\udcff.wsl"))
    with whyslow.open(odd) as recording:
        assert recording.table("syscall").num_rows == 7
        assert recording.sql("SELECT COUNT(*) AS n FROM syscall").fetchall() == [(7,)]
        assert recording.io.stats()["stats"].num_rows > 0
    (odd / "manifest.json").unlink()
    with pytest.raises(whyslow.RecordingError) as caught:
        whyslow.open(odd)
    str(caught.value).encode()


def test_columns_with_times_are_known_by_their_names(web: whyslow.Recording) -> None:
    """The format documentation states the unit of every column."""
    table, documented = "", {}
    for line in (ROOT / "docs" / "format.md").read_text().splitlines():
        if line.startswith("### "):
            table = line.removeprefix("### ")
        found = re.match(r"\| `(\w+)` \| (?:INT|UTF|BOOL|DOUBLE)\S* ?\S* \| ([^|]*) \|", line)
        if found:
            documented[table, found[1]] = found[2].strip() == "ns since the epoch"
    columns = {
        (name, field.name): is_time(field) for name in web.tables for field in web.schema(name)
    }
    assert columns == documented


def test_times_become_timestamps_in_the_recorded_zone(lossy: whyslow.Recording) -> None:
    assert lossy.zone == "-05:30"
    table = lossy.table("syscall", columns=["ts", "dur", "ts_end"])
    shown = lossy.with_times(table)
    zoned = pa.timestamp("ns", "-05:30")
    assert shown.schema.types == [zoned, pa.int64(), zoned]
    assert shown.column("ts").cast(pa.int64()) == table.column("ts")
    assert shown.schema.metadata == table.schema.metadata
    face = shown.column("ts")[0].as_py()
    assert (face.hour, face.minute) == (11, 48)
    assert lossy.with_times(table, columns=["ts"]).schema.types[2] == pa.int64()
    log = lossy.with_times(lossy.io.log()["log"])
    assert log.schema.field("ts_ns").type == zoned
    assert log.schema.field("dur_ns").type == pa.int64()
    result = lossy.sql("SELECT ts FROM syscall").to_arrow_table()
    assert whyslow.with_times(result).schema.types == [pa.timestamp("ns", "UTC")]


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        (None, "UTC"),
        ("+00:00", "UTC"),
        ("-00:00", "UTC"),
        ("+0100", "+01:00"),
        ("-05", "-05:00"),
        ("+05:30", "+05:30"),
        ("UTC", "UTC"),
        ("Nowhere/Land", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("", "UTC"),
    ],
)
def test_zones_are_named_as_arrow_names_them(zone: str | None, name: str) -> None:
    assert zone_name(zone) == name


def test_times_are_told_to_the_program_exactly() -> None:
    assert moment_text(1_421_342_317_216_484_041) == "2015-01-15T17:18:37.216484041Z"
    assert moment_text(0) == "1970-01-01T00:00:00.000000000Z"
    assert moment_text(-1) == "1969-12-31T23:59:59.999999999Z"
    assert moment_text(2**63 - 1) == "2262-04-11T23:47:16.854775807Z"
    assert window_text((None, 1)) == "..1970-01-01T00:00:00.000000001Z"
    assert window_text("op:17") == "op:17"
    with pytest.raises(whyslow.QueryError, match="out of range"):
        moment_text(10**30)
