"""An open recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from . import checksums, manifest, packed, program, queries, session, views
from .answer import Answer, Loss
from .errors import WhyslowError
from .files import RecordingFiles
from .frames import to_pandas, to_polars
from .tables import TableReader
from .times import Window, with_times

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from .manifest import Source, TableInfo
    from .queries import Kind


class Recording:
    """A recording: tables, views, and queries.

    It is opened read-only with `whyslow.open`. Times are in ns since the Unix epoch, durations in
    ns, sizes in bytes. `docs/format.md` documents tables and columns.

    Kinds of the program are attributes and their verbs are methods: `recording.io.stats()`.

    Attributes:
        path: absolute path.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(os.path.abspath(os.fspath(path)))
        self._unpacked = packed.unpack(self.path) if packed.is_packed(self.path) else None
        # The unpacked folder, or `path`.
        self._place = self.path
        if self._unpacked is not None:
            self._place = Path(self._unpacked.name) / self.path.name
        self._files = RecordingFiles(self._place)
        self._manifest = manifest.read(self._files)
        self._reader = TableReader(self._files, self._manifest)

    @property
    def host(self) -> str | None:
        """Recorded host; None if the sources do not contain it."""
        return self._manifest.host

    @property
    def zone(self) -> str | None:
        """Time zone of the recorded host, an IANA name or an offset; None if not in the sources."""
        return self._manifest.zone

    @property
    def begin_ns(self) -> int:
        """Start of the recording, ns since the epoch."""
        return self._manifest.begin_ns

    @property
    def end_ns(self) -> int:
        """End of the recording, ns since the epoch."""
        return self._manifest.end_ns

    @property
    def focus(self) -> tuple[int, int] | None:
        """Default window of queries, for a part of a recording; else None."""
        return self._manifest.focus

    @property
    def sources(self) -> tuple[Source, ...]:
        """The imported sources."""
        return self._manifest.sources

    @property
    def written_by(self) -> str:
        """Program and version that wrote it."""
        return self._manifest.written_by

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        """Tables by name, with their row counts."""
        return self._manifest.tables

    @property
    def views(self) -> dict[str, str]:
        """Views by name, with the meaning and units of their columns."""
        return {name: views.header(text) for name, text in views.views().items()}

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Time ranges in which events were lost, in time order."""
        if "lost_events" not in self.tables:
            return ()
        rows = self.table("lost_events").to_pylist()
        return tuple(
            Loss(row["kind"], row["count"], row["cpu"], row["ts"], row["ts_end"]) for row in rows
        )

    def schema(self, name: str) -> pa.Schema:
        """Columns and types of a table."""
        return self._reader.schema(name)

    def table(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pa.Table:
        """A table, in time order.

        Args:
            name: as in `tables`.
            columns: names of the columns; default all.
            window: `(begin, end)` with `begin <= t < end`, each in ns since the epoch, a datetime
                with a time zone, or None. Rows that overlap it are returned whole.

        Raises:
            QueryError: no such table or column, or an invalid window.
            RecordingError: the table is damaged.
        """
        return self._reader.read(name, columns, window)

    def pandas(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pd.DataFrame:
        """A table as a pandas data frame; nullable integers stay integers."""
        return to_pandas(self.table(name, columns, window))

    def polars(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pl.DataFrame:
        """A table as a Polars data frame."""
        return to_polars(self.table(name, columns, window))

    def with_times(self, table: pa.Table, columns: Iterable[str] | None = None) -> pa.Table:
        """A table or answer with timestamps in the time zone of the recorded host.

        Args:
            columns: names of the columns to convert; default all with times.
        """
        return with_times(table, self.zone, columns)

    def verify(self) -> None:
        """Verifies the checksums of all tables.

        The program does this on every read. Arrow and DuckDB do not use the checksums.

        Raises:
            RecordingError: a file is damaged.
        """
        infos = self.tables.values()
        checksums.verify(
            self._files, [f for info in infos for f in (*info.files, *info.long_files)]
        )

    def sql(self, text: str, params: Sequence[Any] | None = None) -> duckdb.DuckDBPyRelation:
        """Runs SQL on all tables and the views of `views`.

        Statements can read only the recording, and cannot write files. They share one session, for
        use by one thread at a time: tables and views created by one are visible to the next.

        Args:
            params: values for `?` in the text.

        Returns:
            The result, evaluated lazily: `.to_arrow_table()`, `.fetchall()`, or
            `whyslow.to_pandas(result)`, which keeps integers exact. None for a statement without
            a result.

        Raises:
            duckdb.Error: the statement is invalid or not allowed.
            RecordingError: a table is damaged.
        """
        return self._session.sql(text, params=params) if params else self._session.sql(text)

    def connect(
        self, memory: str = "4GiB", threads: int | None = None
    ) -> duckdb.DuckDBPyConnection:
        """A new session like that of `sql`.

        Args:
            memory: memory limit of its queries.
            threads: number of threads; default all CPUs.
        """
        return session.connect(
            self._files, self._manifest, lambda name: self.schema(name).names, memory, threads
        )

    @cached_property
    def _session(self) -> duckdb.DuckDBPyConnection:
        return self.connect()

    def query(
        self,
        query: str,
        *,
        window: Window | str | None = None,
        interval: str | timedelta | None = None,
        count: int | None = None,
        **flags: Any,
    ) -> Answer:
        """Runs a query of the program.

        Args:
            query: kind and verb: `io stats`.
            window: `(begin, end)` as for `table`, or text as for `-w` (`op:17`, `+3s..+4s`).
            interval: length of an interval (`1s`), each with its own rows.
            count: number of intervals.
            flags: flags of the program with `_` for `-`: `min_size=2`, `comm="apache*"`,
                `by=["comm", "op"]`, `no_tracer=True`. Durations have a unit or are a timedelta:
                `min="10ms"`. Times are as in a window: `at=rec.end_ns`.

        Raises:
            QueryError: the program failed; message and hint come from it.
            ProgramError: the program is not installed.
        """
        return queries.query(self._place, query, window, interval, count, flags)

    def kinds(self) -> dict[str, dict[str, str]]:
        """Kinds of the program, with their verbs and descriptions."""
        return queries.kinds()

    def __getattr__(self, name: str) -> Kind:
        # Introspection tools look up such names.
        if name.startswith("_"):
            raise AttributeError(name)
        found = queries.kind(name, self.query)
        if found is None:
            raise AttributeError(
                f"a recording has no attribute `{name}`, and `{program.find()}` has no such kind; "
                f"kinds: {', '.join(queries.kinds())}"
            )
        return found

    def __dir__(self) -> Iterable[str]:
        try:
            kinds = list(queries.kinds())
        except WhyslowError:
            kinds = []
        return [*super().__dir__(), *kinds]

    def close(self) -> None:
        """Closes the files; reading afterwards raises an error."""
        connection = self.__dict__.pop("_session", None)
        if connection is not None:
            connection.close()
        self._files.close()
        if self._unpacked is not None:
            self._unpacked.cleanup()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        length_s = (self.end_ns - self.begin_ns) / 1e9
        rows = sum(info.rows for info in self.tables.values())
        return f"<recording {self.path.name}: host {self.host}, {length_s:.3f} s, {rows} rows>"


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Opens a recording: a folder `NAME.wsl`, or a file `NAME.wsl.tar.zst`, which is unpacked into
    a temporary folder until the recording is closed.

    Raises:
        RecordingError: not a recording, or one that is incomplete, damaged or of a later format.
    """
    return Recording(path)


def import_trace(
    *traces: str | os.PathLike[str], output: str | os.PathLike[str], force: bool = False
) -> Recording:
    """Imports traces into a recording and opens it.

    Args:
        traces: folders, files or archives; several are merged on one clock.
        output: the recording to write (`NAME.wsl`).
        force: replaces an existing recording.

    Raises:
        QueryError: the import failed; message and hint come from the program.
        ProgramError: the program is not installed.
    """
    words: list[str | bytes] = ["import", b"--output=" + os.fsencode(output)]
    if force:
        words.append("--force")
    words += ["--", *(os.fsencode(os.path.abspath(os.fspath(trace))) for trace in traces)]
    program.run(words)
    return Recording(output)
