"""`manifest.json`: the description of a recording.

The importer writes it last, so a folder without it is not a recording. File names in it are
checked before anything is opened: the files of a recording are in its own folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .errors import RecordingError
from .files import RecordingFiles

FILE_NAME = "manifest.json"
#: Highest version this package reads. It is increased when older readers could misread a recording.
FORMAT_VERSION = 3
#: Earlier versions lack required columns. `renamed` translates names of version 2.
OLDEST_VERSION = 2
#: A manifest names a few dozen files; a larger file is something else.
BYTES_MAX = 16 << 20

_I64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Source:
    """A source of an import.

    Attributes:
        path: path as given to the import.
        kind: `lttng`, `ctf`, `text`, …
        bytes: total size of its files.
        digest: BLAKE3 of its files in name order.
    """

    path: str
    kind: str
    bytes: int
    digest: str


@dataclass(frozen=True)
class TableInfo:
    """A table of a recording.

    Attributes:
        rows: number of rows.
        unfinished: rows without an end.
        dur_ns_max: longest distance from `ts` to `ts_end` in `files`, ns; None without one.
        files: in time order.
        long_files: files with rows that arrived too late for their position, also sorted.
    """

    rows: int
    unfinished: int
    dur_ns_max: int | None
    files: tuple[str, ...]
    long_files: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """`begin_ns` and `end_ns` are the first and last time, ns since the Unix epoch.

    `focus` is the window that a part of a recording was cut for.
    """

    format_version: int
    written_by: str
    sources: tuple[Source, ...]
    host: str | None
    zone: str | None
    begin_ns: int
    end_ns: int
    tables: Mapping[str, TableInfo]
    focus: tuple[int, int] | None


def read(files: RecordingFiles) -> Manifest:
    """Reads the manifest of a recording, and checks that all its files exist.

    Raises:
        RecordingError: not a recording, or one that is incomplete, damaged or of a later format.
    """
    try:
        file = files.open(FILE_NAME)
    except FileNotFoundError:
        raise RecordingError(
            f"`{files.shown}` is not a recording: it has no `{FILE_NAME}`, which an "
            "import writes last",
            hint="if it is a trace, import it: whyslow.import_trace(TRACE, output='NAME.wsl')",
        ) from None
    except OSError as error:
        raise RecordingError(
            f"failed to open `{files.shown}`", causes=[f"{error.filename}: {error.strerror}"]
        ) from None
    if file.size > BYTES_MAX:
        raise RecordingError(
            f"`{files.shown}` is not a recording: `{FILE_NAME}` has {file.size} bytes"
        )
    found = parse(file.read(), files.shown)
    for name, info in found.tables.items():
        for listed in (*info.files, *info.long_files):
            try:
                files.open(listed)
            except OSError as error:
                raise RecordingError(
                    f"`{files.shown}` is incomplete: `{listed}` of table `{name}`: "
                    f"{error.strerror}",
                    hint="import the trace again, with --force",
                ) from None
    return found


def parse(content: bytes, recording: str) -> Manifest:
    """Reads a manifest.

    Args:
        content: content of the file.
        recording: name of the recording, for errors.

    Raises:
        RecordingError: it is damaged, of a later format, or names files elsewhere.
    """
    try:
        # Deep nesting raises RecursionError in the parser.
        found = json.loads(content, parse_constant=_no_number)
        # Python accepts escaped lone surrogates, which are invalid elsewhere.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _damaged(recording, str(error)) from None
    reader = _Reader(recording)
    whole = reader.mapping(found, "the document")
    # Checked first: a later version may have changed everything else.
    version = reader.integer(whole, "format_version")
    if version > FORMAT_VERSION:
        raise RecordingError(
            f"`{recording}` has format version {version}; this package reads up to "
            f"{FORMAT_VERSION}",
            hint="use a newer whyslow package, or import the trace again",
        )
    if version < OLDEST_VERSION:
        raise RecordingError(
            f"`{recording}` has format version {version}; this package reads {OLDEST_VERSION} "
            "and later",
            hint="import the trace again",
        )
    tables = reader.mapping(whole.get("tables"), "tables")
    return Manifest(
        format_version=version,
        written_by=reader.text(whole, "written_by"),
        sources=tuple(
            reader.source(source) for source in reader.sequence(whole.get("sources"), "sources")
        ),
        host=reader.text_or_none(whole, "host"),
        zone=reader.text_or_none(whole, "zone"),
        begin_ns=reader.integer(whole, "begin_ns"),
        end_ns=reader.integer(whole, "end_ns"),
        tables=MappingProxyType({name: reader.table(tables[name]) for name in sorted(tables)}),
        focus=reader.focus(whole.get("cut")),
    )


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _damaged(recording: str, reason: str) -> RecordingError:
    return RecordingError(
        f"`{recording}` is not a recording: `{FILE_NAME}` is damaged: {reason}",
        hint="import the trace again",
    )


class _Reader:
    """Reads values of the manifest and checks their types."""

    def __init__(self, recording: str):
        self._recording = recording

    def mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _damaged(self._recording, f"{what} is not an object")
        return value

    def focus(self, cut: Any) -> tuple[int, int] | None:
        if cut is None:
            return None
        cut = self.mapping(cut, "cut")
        return self.integer(cut, "focus_begin_ns"), self.integer(cut, "focus_end_ns")

    def sequence(self, value: Any, what: str) -> list[Any]:
        if not isinstance(value, list):
            raise _damaged(self._recording, f"{what} is not a list")
        return value

    def integer(self, whole: dict[str, Any], key: str) -> int:
        value = whole.get(key)
        # In Python a boolean is an integer.
        if not isinstance(value, int) or isinstance(value, bool) or value not in _I64:
            raise _damaged(self._recording, f"`{key}` is not a 64-bit integer")
        return value

    def count(self, whole: dict[str, Any], key: str) -> int:
        value = self.integer(whole, key)
        if value < 0:
            raise _damaged(self._recording, f"`{key}` is negative")
        return value

    def text(self, whole: dict[str, Any], key: str) -> str:
        value = whole.get(key)
        if not isinstance(value, str):
            raise _damaged(self._recording, f"`{key}` is not a string")
        return value

    def text_or_none(self, whole: dict[str, Any], key: str) -> str | None:
        return None if whole.get(key) is None else self.text(whole, key)

    def source(self, value: Any) -> Source:
        source = self.mapping(value, "a source")
        return Source(
            path=self.text(source, "path"),
            kind=self.text(source, "kind"),
            bytes=self.count(source, "bytes"),
            digest=self.text(source, "digest"),
        )

    def table(self, value: Any) -> TableInfo:
        table = self.mapping(value, "a table")
        has_length = table.get("dur_max_ns") is not None
        return TableInfo(
            rows=self.count(table, "rows"),
            unfinished=self.count(table, "unfinished"),
            dur_ns_max=self.integer(table, "dur_max_ns") if has_length else None,
            files=self.files(table.get("files")),
            long_files=self.files(table.get("long_files")),
        )

    def files(self, value: Any) -> tuple[str, ...]:
        names = self.sequence(value, "a list of files")
        for name in names:
            if not isinstance(name, str) or not _is_plain(name):
                raise _damaged(self._recording, f"file name outside of the recording: {name!r}")
        return tuple(names)


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not set("/\0") & set(name)
