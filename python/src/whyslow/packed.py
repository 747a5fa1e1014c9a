"""A recording as one file (`NAME.wsl.tar.zst`), unpacked into a private folder for reading.

It is a zstd-compressed `ustar` archive: `manifest.json` and `checksums` first, then the tables.
The author of an archive must not choose what is written: only files that both the manifest and the
checksums list are written, each once, with matching size and content, and within the free disk
space.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from . import checksums, manifest
from .errors import RecordingError
from .files import RecordingFiles

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
#: Usual suffix of packed recordings.
_ENDING = ".wsl.tar.zst"
_BLOCK = 512
_PIECE_BYTES = 16 * checksums.BLOCK_BYTES
_CHECKSUMS_BYTES_MAX = 32 << 20
_UNPACKED_BYTES_MAX = 64 << 30
_FREE_BYTES_MIN = 256 << 20
#: Archivers pad the end with zeros.
_FILL_BYTES_MAX = 1 << 20


def is_packed(path: Path) -> bool:
    """Whether the file is a packed recording, or has the suffix and compression of one."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            if file.read(len(_ZSTD_MAGIC)) != _ZSTD_MAGIC:
                return False
        if path.name.endswith(_ENDING):
            return True
        with pa.CompressedInputStream(pa.OSFile(os.fsencode(path), "rb"), "zstd") as stream:
            name = stream.read(100).rstrip(b"\0")
    except (OSError, ValueError, pa.ArrowException):
        return False
    return bytes(name) == manifest.FILE_NAME.encode()


def unpack(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Unpacks a recording into a temporary folder, under the name of the file.

    Raises:
        RecordingError: damaged, or not a packed recording.
    """
    shown = os.fsdecode(path).encode("utf-8", "replace").decode()
    folder = tempfile.TemporaryDirectory(prefix="whyslow-")
    try:
        inside = Path(folder.name) / path.name
        inside.mkdir(mode=0o700)
        with pa.CompressedInputStream(pa.OSFile(os.fsencode(path), "rb"), "zstd") as stream:
            _Archive(stream, shown).unpack(inside)
    except BaseException as error:
        folder.cleanup()
        if isinstance(error, (OSError, pa.ArrowException)):
            raise RecordingError(f"failed to unpack `{shown}`", causes=[str(error)]) from None
        raise
    return folder


class _Archive:
    def __init__(self, stream: pa.CompressedInputStream, shown: str):
        self._stream = stream
        self._shown = shown
        self._at = 0

    def unpack(self, folder: Path) -> None:
        description = self._small(manifest.FILE_NAME, manifest.BYTES_MAX)
        found = manifest.parse(description, self._shown)
        sums = self._small(checksums.FILE_NAME, _CHECKSUMS_BYTES_MAX)
        # Files are opened below the folder only, so this one may be there already.
        _write(folder, checksums.FILE_NAME)(sums)
        files = RecordingFiles(folder)
        try:
            known = checksums.read(files)
        finally:
            files.close()
        wanted = {
            name for info in found.tables.values() for name in (*info.files, *info.long_files)
        }
        own = {manifest.FILE_NAME, checksums.FILE_NAME}
        if not wanted <= known.keys() - own:
            raise self._broken("checksums of some files are missing")
        room = min(shutil.disk_usage(folder).free - _FREE_BYTES_MIN, _UNPACKED_BYTES_MAX)
        if sum(known[name][0] for name in wanted) > room:
            raise self._broken(f"only {room} bytes of disk space are available")
        while header := self._header():
            name, size = header
            if name not in wanted:
                raise self._broken(f"`{name}` is not part of the recording, or is duplicated")
            wanted.remove(name)
            self._table(folder, name, size, known[name])
        if wanted:
            raise self._broken(f"the archive ends without `{min(wanted)}`")
        self._end()
        _write(folder, manifest.FILE_NAME)(description)

    def _broken(self, reason: str) -> RecordingError:
        return RecordingError(
            f"cannot unpack `{self._shown}`: {reason} (at byte {self._at} of the archive)",
            hint="if it is a trace, import it: whyslow.import_trace(TRACE, output='NAME.wsl')",
        )

    def _read(self, count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            try:
                piece = self._stream.read(count - len(content))
            except (OSError, pa.ArrowException) as error:
                raise self._broken(str(error)) from None
            if not piece:
                raise self._broken("unexpected end of file")
            content += piece
        self._at += count
        return bytes(content)

    def _header(self) -> tuple[str, int] | None:
        block = self._read(_BLOCK)
        if not any(block):
            return None
        try:
            if int(block[148:156].strip(b"\0 "), 8) != sum(block) - sum(block[148:156]) + 8 * 32:
                raise ValueError
            if block[156:157] not in (b"0", b"\0") or not block[257:262] == b"ustar":
                raise ValueError
            name = block[:100].rstrip(b"\0").decode()
            if block[124] == 0x80:
                size = int.from_bytes(block[125:136], "big")
            else:
                size = int(block[124:136].strip(b"\0 "), 8)
        except ValueError:
            raise self._broken("not a tar header of a regular file") from None
        return name, size

    def _copy(self, size: int, take: Callable[[bytes], None]) -> None:
        left = size
        while left > 0:
            piece = self._read(min(left, _PIECE_BYTES))
            take(piece)
            left -= len(piece)
        self._read(-size % _BLOCK)

    def _small(self, name: str, bytes_max: int) -> bytes:
        header = self._header()
        if header is None or header[0] != name or header[1] > bytes_max:
            raise self._broken(f"expected `{name}` here")
        content = bytearray()
        self._copy(header[1], content.extend)
        return bytes(content)

    def _table(
        self, folder: Path, name: str, size: int, known: tuple[int, tuple[int, ...]]
    ) -> None:
        if size != known[0]:
            raise self._broken(f"`{name}` has {size} bytes instead of {known[0]}")
        write, blocks = _write(folder, name), iter(known[1])

        def take(piece: bytes) -> None:
            for begin in range(0, len(piece), checksums.BLOCK_BYTES):
                if crc32(piece[begin : begin + checksums.BLOCK_BYTES]) != next(blocks):
                    raise self._broken(f"checksum mismatch in `{name}`")
            write(piece)

        self._copy(size, take)

    def _end(self) -> None:
        filled = 0
        while piece := self._stream.read(_BLOCK):
            filled += len(piece)
            if any(piece) or filled > _FILL_BYTES_MAX:
                raise self._broken("trailing data")


def _write(folder: Path, name: str) -> Callable[[bytes], None]:
    """Creates a file, without following links, and returns a function that appends to it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(folder / name, flags, 0o600))

    def write(piece: bytes) -> None:
        with (folder / name).open("ab") as file:
            file.write(piece)

    return write
