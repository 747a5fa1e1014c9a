"""A DuckDB session that can read one recording and nothing else, and cannot write.

DuckDB restricts file access by path, but files that it may read it may also overwrite: `COPY … TO`
without a temporary file replaces a file of the recording. The program sandboxes its process with
kernel features, which a library must not do to its caller. Therefore DuckDB reads the files
through a read-only file system, under names that exist nowhere else; all other file systems are
disabled, and the settings are locked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import duckdb
from fsspec import AbstractFileSystem

from . import renamed, views
from .errors import RecordingError
from .files import RecordingFile, RecordingFiles
from .manifest import Manifest

_PROTOCOL = "whyslow"

# No extensions are loaded, and Python variables are not visible as tables.
LIMITS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    # No spilling to disk.
    "temp_directory": "",
}
# Other files are locked twice: the second lock alone leaves files named `:memory:` accessible.
# The last one locks all settings.
LOCKS = {
    "disabled_filesystems": "LocalFileSystem",
    "enable_external_access": "false",
    "lock_configuration": "true",
}


class _ReadOnly(AbstractFileSystem):  # type: ignore[misc]
    """The files of a recording as `whyslow://NAME`, read-only."""

    protocol = _PROTOCOL
    # Each recording has its own file system.
    cachable = False

    def __init__(self, files: RecordingFiles, names: frozenset[str]):
        super().__init__()
        self._files = files
        self._names = names

    def open(self, path: str, mode: str = "rb", **_: Any) -> RecordingFile:
        if mode != "rb":
            raise PermissionError(f"`{path}` is read-only")
        return self._files.open(self._name(path))

    def exists(self, path: str, **_: Any) -> bool:
        return path.removeprefix(f"{_PROTOCOL}://") in self._names

    isfile = exists

    def glob(self, path: str, **_: Any) -> list[str]:
        # A name may contain glob characters.
        return [path] if self.exists(path) else []

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        size = self._files.open(self._name(path)).size
        return {"name": path, "size": size, "type": "file"}

    def modified(self, path: str) -> datetime:
        # Recordings are immutable.
        return datetime(1970, 1, 1, tzinfo=timezone.utc)

    def _name(self, path: str) -> str:
        if not self.exists(path):
            raise FileNotFoundError(path)
        return path.removeprefix(f"{_PROTOCOL}://")


def connect(
    files: RecordingFiles,
    manifest: Manifest,
    columns_of: Callable[[str], list[str]],
    memory: str,
    threads: int | None,
) -> duckdb.DuckDBPyConnection:
    """A locked session with a view per table and the views of `sql/views/`.

    Args:
        columns_of: returns the column names of a table.
        memory: memory limit (`4GiB`).
        threads: number of threads; default all CPUs.

    Raises:
        RecordingError: files of a table are damaged.
        duckdb.Error: a limit is invalid.
    """
    names = {name: [*info.files, *info.long_files] for name, info in manifest.tables.items()}
    known = frozenset(file for listed in names.values() for file in listed)
    limits = {**LIMITS, "memory_limit": memory}
    if threads is not None:
        limits["threads"] = str(threads)
    connection = duckdb.connect(":memory:")
    with contextlib.ExitStack() as undo:
        undo.callback(connection.close)
        connection.register_filesystem(_ReadOnly(files, known))
        set_all(connection, limits)
        for name, listed in names.items():
            columns = columns_of(name)
            try:
                connection.execute(_table(name, columns, listed, manifest.format_version))
            except duckdb.Error as error:
                raise RecordingError(
                    f"table `{name}` in `{files.shown}` is damaged: {error}",
                    hint="import the trace again, with --force",
                ) from error
        _create_views(connection)
        # Set even if empty: files named `:memory:` are allowed by default.
        allowed = ", ".join(_literal(_address(file)) for file in sorted(known))
        connection.execute(views.setup("allow").replace("{files}", allowed))
        set_all(connection, LOCKS)
        undo.pop_all()
    return connection


def set_all(connection: duckdb.DuckDBPyConnection, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        statement = views.setup("limit").replace("{name}", name)
        connection.execute(statement.replace("{value}", _literal(value)))


def _table(name: str, columns: list[str], files: list[str], version: int) -> str:
    shown = ", ".join(_column(version, name, column) for column in columns)
    return (
        views.setup("table")
        .replace("{view}", _identifier(name))
        .replace("{columns}", shown)
        .replace("{files}", ", ".join(_literal(_address(file)) for file in files))
    )


def _column(version: int, table: str, column: str) -> str:
    """A column of files of this format version, with its name and words of today."""
    in_files = {new: old for old, new in renamed.new_columns(version, table).items()}
    words = renamed.new_words(version, table, column)
    if not words and column not in in_files:
        return _identifier(column)
    cases = "\n".join(
        views.setup("word_renamed").replace("{old}", _literal(old)).replace("{new}", _literal(new))
        for old, new in words.items()
    )
    return (
        views.setup("words_renamed" if words else "column_renamed")
        .replace("{column_in_files}", _identifier(in_files.get(column, column)))
        .replace("{words}", cases)
        .replace("{column}", _identifier(column))
    )


def _create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates views after those that they read; skips views whose tables are missing.

    Recordings of older versions lack tables that current views read.
    """
    waiting = views.views()
    while waiting:
        failed = {}
        for name, text in waiting.items():
            try:
                connection.execute(text)
            except (duckdb.CatalogException, duckdb.BinderException):
                failed[name] = text
        if len(failed) == len(waiting):
            return
        waiting = failed


def _address(file: str) -> str:
    return f"{_PROTOCOL}://{file}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
