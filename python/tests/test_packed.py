"""Packed recordings: recordings as one file."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import whyslow

WINDOW = "+8s..+9s"


@pytest.fixture(scope="session")
def part(binary: str, web_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("part") / "part.wsl.tar.zst"
    words = ["export", "snapshot", web_path, "-w", WINDOW, "-o", output]
    subprocess.run([binary, *words], check=True, capture_output=True)
    return output


def entries(part: Path) -> list[tuple[str, bytes]]:
    archive = pa.input_stream(str(part), compression="zstd").read()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [(entry.name, tar.extractfile(entry).read()) for entry in tar]  # type: ignore[union-attr]


def packed(path: Path, entries: list[tuple[str, bytes]]) -> Path:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(pa.Codec("zstd").compress(archive.getvalue(), asbytes=True))
    return path


def test_a_packed_recording_opens_like_a_folder(part: Path, web: whyslow.Recording) -> None:
    with whyslow.open(part) as recording:
        assert recording.host == web.host
        assert recording.focus is not None
        assert web.focus is None
        place = recording._place
        begin, end = recording.focus
        here = recording.table("syscall", ["id", "ts", "path"], window=(begin, end))
        assert here.num_rows > 100
        assert here.equals(web.table("syscall", ["id", "ts", "path"], window=(begin, end)))
        (count,) = recording.sql("SELECT count(*) FROM syscall").fetchall()
        assert count == (recording.tables["syscall"].rows,)
        # Without a window, the window that it was cut for.
        answer = recording.io.stats()
        assert answer.table().equals(web.io.stats(window=WINDOW).table())
        assert any(note.startswith("snapshot of a recording") for note in answer.caveats)
        recording.verify()
    assert not place.exists()


def test_what_tar_makes_of_it_opens_too(part: Path, tmp_path: Path) -> None:
    with whyslow.open(packed(tmp_path / "again.wsl.tar.zst", entries(part))) as recording:
        assert recording.host == "boardhost"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda good: good[1:], "expected `manifest.json` here"),
        (lambda good: good[:-1], "ends without"),
        (lambda good: [*good, good[-1]], "is duplicated"),
        (lambda good: [*good, ("../elsewhere", b"x")], "is not part of the recording"),
        (lambda good: [*good[:2], (good[2][0], good[2][1] + b"x"), *good[3:]], "bytes instead of"),
        (
            lambda good: [*good[:2], (good[2][0], b"x" + good[2][1][1:]), *good[3:]],
            "checksum mismatch",
        ),
    ],
)
def test_what_is_none_is_refused(part: Path, tmp_path: Path, change, reason: str) -> None:  # type: ignore[no-untyped-def]
    path = packed(tmp_path / "bad.wsl.tar.zst", change(entries(part)))
    with pytest.raises(whyslow.RecordingError) as caught:
        whyslow.open(path)
    assert reason in str(caught.value)
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_cut_short_is_told(part: Path, tmp_path: Path) -> None:
    whole = part.read_bytes()
    for share in (0, 1, 3, 50, 97):
        path = tmp_path / "short.wsl.tar.zst"
        path.write_bytes(whole[: max(10, len(whole) * share // 100)])
        with pytest.raises(whyslow.RecordingError):
            whyslow.open(path)
