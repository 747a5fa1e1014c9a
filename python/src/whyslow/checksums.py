"""`checksums`: a CRC-32 of every block of every file, taken when it was written.

Integers are little-endian: the eight bytes `WSLSUMS1`; the number of files (4 bytes); for each
file the length of its name (2), its name, its size (8), and a CRC-32 (4) of each block of 16 KiB;
at the end a CRC-32 (4) of everything before.

A flipped bit in compressed numbers yields other numbers, which Parquet readers do not detect.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from zlib import crc32

from .errors import RecordingError
from .files import RecordingFile, RecordingFiles

FILE_NAME = "checksums"
BLOCK_BYTES = 16 << 10
_MAGIC = b"WSLSUMS1"
_READ_BYTES = 256 * BLOCK_BYTES


def verify(files: RecordingFiles, names: Iterable[str]) -> None:
    """Reads the files completely and compares their checksums.

    Raises:
        RecordingError: a file or the checksums are damaged or missing.
    """
    sums = read(files)
    for name in names:
        try:
            file = files.open(name)
        except OSError as error:
            raise _damaged(files, f"`{name}`: {error.strerror}") from None
        if name not in sums:
            raise _damaged(files, f"`{name}` has no checksums")
        _compare(files, name, file, *sums[name])


def _compare(
    files: RecordingFiles, name: str, file: RecordingFile, size: int, blocks: tuple[int, ...]
) -> None:
    if file.size != size:
        raise _damaged(files, f"`{name}` has {file.size} bytes instead of {size}")
    block = 0
    while content := memoryview(file.read(_READ_BYTES)):
        for begin in range(0, len(content), BLOCK_BYTES):
            if crc32(content[begin : begin + BLOCK_BYTES]) != blocks[block]:
                raise _damaged(
                    files, f"checksum mismatch in `{name}` at byte {block * BLOCK_BYTES}"
                )
            block += 1


def read(files: RecordingFiles) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Size and block checksums, by file."""
    try:
        encoded = files.open(FILE_NAME).read()
    except OSError as error:
        raise _damaged(files, f"`{FILE_NAME}`: {error.strerror}") from None
    content, end = encoded[:-4], encoded[-4:]
    if struct.pack("<I", crc32(content)) != end or not content.startswith(_MAGIC):
        raise _damaged(files, f"`{FILE_NAME}` is invalid")
    sums = {}
    try:
        (count,) = struct.unpack_from("<I", content, 8)
        at = 12
        for _ in range(count):
            (length,) = struct.unpack_from("<H", content, at)
            name, (size,) = (
                content[at + 2 :][:length],
                struct.unpack_from("<Q", content, at + 2 + length),
            )
            at += 10 + length
            blocks = -(-size // BLOCK_BYTES)
            sums[name.decode()] = (size, struct.unpack_from(f"<{blocks}I", content, at))
            at += 4 * blocks
    except (struct.error, UnicodeDecodeError):
        raise _damaged(files, f"`{FILE_NAME}` is invalid") from None
    return sums


def _damaged(files: RecordingFiles, what: str) -> RecordingError:
    return RecordingError(
        f"`{files.shown}` is damaged: {what}", hint="import the trace again, with --force"
    )
