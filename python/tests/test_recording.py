"""Opening recordings: their properties, and errors for everything else."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import WEB_TRACE, cli_json

import whyslow


def test_it_tells_what_the_program_tells(web: whyslow.Recording, binary: str) -> None:
    info = cli_json(binary, "info", web.path)
    assert web.host == info["host"] == "boardhost"
    assert web.zone == info["zone"]
    assert web.begin_ns == info["window"]["begin_ns"]
    assert web.end_ns == info["window"]["end_ns"]
    tables = {table["name"]: table["rows"] for table in info["tables"]}
    (source,) = tables["sources"]
    assert [vars(web.sources[0])[key] for key in ("kind", "bytes", "path", "digest")] == [
        source[key] for key in ("kind", "bytes", "path", "digest")
    ]
    rows = {name: about.rows for name, about in web.tables.items() if about.rows}
    assert rows == {row["table"]: row["rows"] for row in tables["tables"]}
    assert web.losses == ()
    assert "boardhost" in repr(web)


def test_losses_are_those_of_the_program(lossy: whyslow.Recording, binary: str) -> None:
    (loss,) = lossy.losses
    assert [vars(loss)] == cli_json(binary, "info", lossy.path)["losses"]
    assert (loss.kind, loss.count) == ("events", 7002)
    assert lossy.query("info").losses == lossy.losses


def test_what_is_no_recording_says_so(tmp_path: Path) -> None:
    def check(path: str | Path, *parts: str) -> None:
        with pytest.raises(whyslow.RecordingError) as caught:
            whyslow.open(path)
        for part in parts:
            assert part in str(caught.value)

    check(tmp_path / "missing.wsl", "no such recording", "hint: ", "whyslow import")
    check(WEB_TRACE, "is not a directory", "import_trace")
    check(tmp_path, "has no `manifest.json`", "import_trace")
    check("a\0b", "failed to open")
    (tmp_path / "manifest.json").mkdir()
    check(tmp_path, "`manifest.json` is not a regular file")


def changed(recording: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy with a changed manifest."""
    copy = recording.with_name(f"copy-{recording.name}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(recording, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def test_an_earlier_format_is_refused_with_what_helps(make: Callable[..., Path]) -> None:
    path = changed(make(), lambda manifest: manifest.update(format_version=1))
    with pytest.raises(whyslow.RecordingError, match="format version 1") as caught:
        whyslow.open(path)
    assert "import the trace again" in str(caught.value)


def test_a_later_format_is_refused_with_what_helps(make: Callable[..., Path]) -> None:
    path = changed(make(), lambda manifest: manifest.update(format_version=4))
    with pytest.raises(whyslow.RecordingError, match="format version 4") as caught:
        whyslow.open(path)
    assert "newer whyslow" in str(caught.value)
    # Only the version is required, whatever else changed.
    (path / "manifest.json").write_text('{"format_version": 999}')
    with pytest.raises(whyslow.RecordingError, match="999"):
        whyslow.open(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b'{"format_version": true}',
        b'{"format_version": "1"}',
        b'{"format_version": NaN}',
        b'{"format_version": 3}',
        b"[" * 100_000,
        b'{"format_version": 3, "host": "\\ud800"}',
        b'{"format_version": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_damaged_manifest_is_told(make: Callable[..., Path], content: bytes) -> None:
    path = make()
    (path / "manifest.json").write_bytes(content)
    with pytest.raises(whyslow.RecordingError, match=r"is not a recording|format version"):
        whyslow.open(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("begin_ns", 1.5),
        ("begin_ns", 2**63),
        ("end_ns", None),
        ("host", 7),
        ("sources", {}),
        ("sources", [{"path": "x", "kind": "x", "bytes": -1, "digest": ""}]),
        ("tables", []),
        ("tables", {"syscall": []}),
        ("written_by", None),
    ],
)
def test_a_manifest_with_values_that_cannot_be_is_damaged(
    make: Callable[..., Path], key: str, value: Any
) -> None:
    path = changed(make(), lambda manifest: manifest.update({key: value}))
    with pytest.raises(whyslow.RecordingError, match="is damaged"):
        whyslow.open(path)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", "", "a/b", "a\0b", 7])
def test_files_elsewhere_are_not_read(make: Callable[..., Path], name: Any) -> None:
    def lead_away(manifest: dict[str, Any]) -> None:
        manifest["tables"]["syscall"]["files"] = [name]

    with pytest.raises(whyslow.RecordingError, match="file name outside of the recording"):
        whyslow.open(changed(make(), lead_away))


def test_links_and_pipes_are_not_followed(make: Callable[..., Path]) -> None:
    path = make()
    table = path / "syscall.parquet"
    elsewhere = path.with_name("elsewhere.parquet")
    table.rename(elsewhere)
    table.symlink_to(elsewhere)
    with pytest.raises(whyslow.RecordingError, match="symbolic link"):
        whyslow.open(path)
    table.unlink()
    os.mkfifo(table)
    with pytest.raises(whyslow.RecordingError, match="not a regular file"):
        whyslow.open(path)


def test_an_incomplete_recording_names_what_is_missing(make: Callable[..., Path]) -> None:
    path = make()
    (path / "wakeup.parquet").unlink()
    with pytest.raises(whyslow.RecordingError, match=r"incomplete: `wakeup\.parquet`") as caught:
        whyslow.open(path)
    assert caught.value.hint


def test_damaged_tables_are_errors_that_name_the_table(make: Callable[..., Path]) -> None:
    path = make()
    (path / "syscall.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with whyslow.open(path) as recording:
        with pytest.raises(whyslow.RecordingError, match="table `syscall`"):
            recording.table("syscall")
        with pytest.raises(whyslow.RecordingError, match="table `syscall`"):
            recording.sql("SELECT 1")
        assert recording.table("block_io").num_rows == 1
    shutil.copy(path / "block_io.parquet", path / "irq.parquet")
    with (
        whyslow.open(path) as recording,
        pytest.raises(whyslow.RecordingError, match="its files have 1 rows"),
    ):
        recording.table("irq")


def test_verify_finds_every_changed_byte(make: Callable[..., Path]) -> None:
    path = make()
    with whyslow.open(path) as recording:
        recording.verify()
    for name in ("syscall.parquet", "checksums"):
        content = (path / name).read_bytes()
        for at in range(0, len(content), 37):
            changed = bytearray(content)
            changed[at] ^= 16
            (path / name).write_bytes(changed)
            with whyslow.open(path) as recording, pytest.raises(whyslow.RecordingError):
                recording.verify()
        (path / name).write_bytes(content[:-1])
        with whyslow.open(path) as recording, pytest.raises(whyslow.RecordingError):
            recording.verify()
        (path / name).write_bytes(content)
    with whyslow.open(path) as recording:
        recording.verify()


def test_verify_reads_blocks_as_the_program_wrote_them(web: whyslow.Recording) -> None:
    web.verify()


def test_a_closed_recording_reads_nothing_more(make: Callable[..., Path]) -> None:
    recording = whyslow.open(make())
    recording.sql("SELECT 1").fetchall()
    recording.close()
    recording.close()
    with pytest.raises(ValueError, match="closed"):
        recording.table("syscall")


def test_a_recording_leaves_no_open_files(make: Callable[..., Path]) -> None:
    path = make()

    def opened() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    whyslow.open(path).sql("SELECT COUNT(*) AS n FROM syscall").fetchall()
    before = opened()
    for _ in range(5):
        recording = whyslow.open(path)
        recording.table("syscall")
        recording.sql("SELECT COUNT(*) AS n FROM syscall").fetchall()
        del recording
    assert opened() <= before


def test_a_result_outlives_the_name_of_its_recording(make: Callable[..., Path]) -> None:
    result = whyslow.open(make()).sql("SELECT COUNT(*) AS n FROM syscall")
    gc.collect()
    assert result.fetchall() == [(7,)]


def test_attributes_that_nobody_has_are_told_with_what_there_is(web: whyslow.Recording) -> None:
    with pytest.raises(AttributeError, match="io, block"):
        _ = web.sycsall
    assert not hasattr(web, "_repr_html_")
    for name in ("io", "block", "table", "sql"):
        assert name in dir(web)
