"""The files of a recording, opened read-only.

They are opened relative to the open folder, without following links, and only if they are regular
files: the author of a recording must not choose which files are read. They are read by position,
not mapped: truncating a mapped file would crash the interpreter.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
import weakref
from pathlib import Path
from typing import Any

from .errors import RecordingError

# Non-blocking: opening a planted FIFO would hang.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class RecordingFiles:
    """The folder of a recording. Each file is opened once, on first use."""

    def __init__(self, path: Path):
        """Opens the folder.

        Raises:
            RecordingError: the folder does not exist or cannot be read.
        """
        self.path = path
        self.shown = os.fsdecode(path).encode("utf-8", "replace").decode()
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise RecordingError(
                f"cannot open `{self.shown}`: no such recording",
                hint="create one: whyslow import TRACE -o NAME.wsl",
            ) from None
        except NotADirectoryError:
            raise RecordingError(
                f"`{self.shown}` is not a recording: it is not a directory",
                hint="if it is a trace, import it: whyslow.import_trace(TRACE, output='NAME.wsl')",
            ) from None
        except (OSError, ValueError) as error:
            raise RecordingError(f"failed to open `{self.shown}`", causes=[str(error)]) from None
        self._opened: dict[str, io.FileIO] = {}
        self._lock = threading.Lock()
        self._folder = folder
        self._end = weakref.finalize(self, _close, folder, self._opened)

    def close(self) -> None:
        """Closes everything; reading afterwards is a ValueError."""
        self._end()

    def open(self, name: str) -> RecordingFile:
        """A file, positioned at its start; each has its own position.

        Raises:
            FileNotFoundError: the file does not exist.
            RecordingError: it is not a regular file.
            ValueError: the recording was closed.
        """
        with self._lock:
            if not self._end.alive:
                raise ValueError(f"`{self.shown}` is closed")
            if name not in self._opened:
                self._opened[name] = self._open(name)
            return RecordingFile(self._opened[name])

    def _open(self, name: str) -> io.FileIO:
        try:
            handle = os.open(name, _FLAGS, dir_fd=self._folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._refused(f"`{name}` is a symbolic link") from None
            raise
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise self._refused(f"`{name}` is not a regular file")
        return io.FileIO(handle, "rb")

    def _refused(self, reason: str) -> RecordingError:
        return RecordingError(f"`{self.shown}` is not a recording: {reason}")


def _close(folder: int, opened: dict[str, io.FileIO]) -> None:
    os.close(folder)
    for file in opened.values():
        file.close()


class RecordingFile(io.RawIOBase):
    """A file of a recording with a position for each thread.

    DuckDB and Arrow seek and read in two steps. A thread that runs in between must not move the
    position of the first one.
    """

    def __init__(self, file: io.FileIO):
        super().__init__()
        self._file = file
        self._positions: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._positions.get(threading.get_ident(), 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self.size}
        position = origins[whence] + offset
        if position < 0:
            raise ValueError(f"negative position {position}")
        self._positions[threading.get_ident()] = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        begin = self.tell()
        if size is None or size < 0:
            size = max(self.size - begin, 0)
        pieces = []
        # A system call returns at most 2 GiB.
        while size > 0:
            piece = os.pread(self._file.fileno(), size, begin)
            if not piece:
                break
            pieces.append(piece)
            begin += len(piece)
            size -= len(piece)
        self._positions[threading.get_ident()] = begin
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer).cast("B") as view:
            content = self.read(len(view))
            view[: len(content)] = content
        return len(content)
