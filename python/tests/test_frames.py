"""pandas and Polars data frames equal the Arrow tables to the last bit."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

import whyslow


def test_pandas_frames_keep_integers(web: whyslow.Recording) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed [python]")
    table = web.table("syscall")
    frame = web.pandas("syscall")
    assert list(frame.columns) == table.column_names
    assert len(frame) == table.num_rows
    for name in ("ts", "ts_end", "dur", "tid", "errno"):
        found = pa.array(frame[name], table.schema.field(name).type)
        assert found.to_pylist() == table.column(name).to_pylist(), name
    assert str(frame["compat"].dtype) == "boolean"
    assert frame["path"].isna().sum() == table.column("path").null_count


def test_pandas_frames_of_answers_results_and_windows(web: whyslow.Recording) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed [python]")
    answer = web.io.stats()
    assert answer.pandas()["max_ns"].tolist() == answer.table().column("max_ns").to_pylist()
    assert len(answer.pandas("devices")) == answer["devices"].num_rows
    sums = whyslow.to_pandas(web.sql("SELECT SUM(dur) AS dur FROM syscall"))
    assert str(sums["dur"].dtype) == "Int64"
    times = whyslow.to_pandas(web.with_times(web.table("wakeup", columns=["ts"])))
    first = times["ts"].iloc[0]
    assert isinstance(first, pd.Timestamp)
    begin = web.table("wakeup", columns=["ts"]).column("ts")[0].as_py()
    # A time from a data frame works as a bound of a window, including its ns.
    got = web.pandas("wakeup", columns=["ts"], window=(first, first + pd.Timedelta(1, "ns")))
    assert got["ts"].tolist() == [begin]


def test_polars_frames_keep_integers(web: whyslow.Recording, lossy: whyslow.Recording) -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed [python]")
    table = web.table("syscall")
    frame = web.polars("syscall")
    assert frame.columns == table.column_names
    for name in ("ts", "ts_end", "tid", "path", "compat"):
        assert frame[name].to_list() == table.column(name).to_pylist(), name
    answer = web.io.stats()
    assert answer.polars()["max_ns"].to_list() == answer.table().column("max_ns").to_pylist()
    sums = whyslow.to_polars(web.sql("SELECT SUM(dur) AS dur FROM syscall"))
    assert sums.schema["dur"] == pl.Int64
    # Polars does not support this offset.
    assert lossy.zone == "-05:30"
    times = whyslow.to_polars(lossy.with_times(lossy.table("syscall")))
    assert times.schema["ts"] == pl.Datetime("ns", "UTC")
    shown = times["ts"].dt.epoch("ns").to_list()
    assert shown == lossy.table("syscall").column("ts").to_pylist()


def test_sums_that_fit_no_integer_stay_what_they_are(web: whyslow.Recording) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed [python]")
    frame = whyslow.to_pandas(web.sql("SELECT SUM(9223372036854775807) AS n FROM cpu, thread"))
    assert int(frame["n"].iloc[0]) == web.tables["thread"].rows * (2**63 - 1)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_package_is_named(
    web: whyslow.Recording, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(whyslow.MissingPackageError, match=rf"pip install 'whyslow\[{name}\]'"):
        getattr(web, name)("process")
