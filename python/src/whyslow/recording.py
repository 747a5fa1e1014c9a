"""A recording, opened."""

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

from . import checksums, manifest, packed, program, questions, session, views
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
    from .questions import Kind


class Recording:
    """What a machine did for a while: tables, views, and answers to questions.

    It is opened with `whyslow.open` and read only. Times are ns since the Unix epoch, lengths of
    time are ns, sizes are bytes. `docs/format.md` tells tables and columns.

    Kinds of the program are attributes and their verbs are methods: `recording.io.stats()`.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(os.path.abspath(os.fspath(path)))
        self._unpacked = packed.unpack(self.path) if packed.is_packed(self.path) else None
        # Where it lies now.
        self._place = self.path
        if self._unpacked is not None:
            self._place = Path(self._unpacked.name) / self.path.name
        self._files = RecordingFiles(self._place)
        self._manifest = manifest.read(self._files)
        self._reader = TableReader(self._files, self._manifest)

    @property
    def host(self) -> str | None:
        """Recorded host; None where no source told."""
        return self._manifest.host

    @property
    def zone(self) -> str | None:
        """Zone of the recorded host, an IANA name or an offset; None where no source told."""
        return self._manifest.zone

    @property
    def begin_ns(self) -> int:
        """First time, ns since the epoch."""
        return self._manifest.begin_ns

    @property
    def end_ns(self) -> int:
        """Last time, ns since the epoch."""
        return self._manifest.end_ns

    @property
    def focus(self) -> tuple[int, int] | None:
        """Window that questions without one are about, of a part of a recording; else None."""
        return self._manifest.focus

    @property
    def sources(self) -> tuple[Source, ...]:
        """What was imported."""
        return self._manifest.sources

    @property
    def written_by(self) -> str:
        """Program and version that wrote it."""
        return self._manifest.written_by

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        """Tables by name, with their numbers of rows."""
        return self._manifest.tables

    @property
    def views(self) -> dict[str, str]:
        """Views by name, with what their columns mean and in which units."""
        return {name: views.header(text) for name, text in views.views().items()}

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Ranges of time in which events were lost, in order of time."""
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
        """A table, in order of time.

        Args:
            name: as in `tables`.
            columns: names of those wanted; all without.
            window: `(begin, end)` with `begin <= t < end`, each ns since the epoch, a datetime
                with a zone, or None. Rows that overlap it are kept whole.

        Raises:
            QuestionError: no such table or column, or no window.
            RecordingError: the table is damaged.
        """
        return self._reader.read(name, columns, window)

    def pandas(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pd.DataFrame:
        """A table as a pandas frame; integers that can be null stay integers."""
        return to_pandas(self.table(name, columns, window))

    def polars(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pl.DataFrame:
        """A table as a Polars frame."""
        return to_polars(self.table(name, columns, window))

    def with_times(self, table: pa.Table, columns: Iterable[str] | None = None) -> pa.Table:
        """A table or answer with times as timestamps in the zone of the recorded host.

        Args:
            columns: names of those to convert; without, all that hold times.
        """
        return with_times(table, self.zone, columns)

    def verify(self) -> None:
        """Compares every byte of the tables with what was written.

        The program does so whenever it reads. Arrow and DuckDB know nothing of the checksums.

        Raises:
            RecordingError: something is damaged.
        """
        infos = self.tables.values()
        checksums.verify(
            self._files, [f for info in infos for f in (*info.files, *info.long_files)]
        )

    def sql(self, text: str, params: Sequence[Any] | None = None) -> duckdb.DuckDBPyRelation:
        """Asks in SQL, over all tables and the views of `views`.

        Statements can read the recording and no other file, and can write nothing. They share one
        session, for one thread at a time: what one creates the next one sees.

        Args:
            params: values for `?` in the text.

        Returns:
            The result, computed when it is read: `.to_arrow_table()`, `.fetchall()`, or
            `whyslow.to_pandas(result)`, which keeps integers exact. None for a statement without
            a result.

        Raises:
            duckdb.Error: the statement is wrong or not allowed.
            RecordingError: a table is damaged.
        """
        return self._session.sql(text, params=params) if params else self._session.sql(text)

    def connect(
        self, memory: str = "4GiB", threads: int | None = None
    ) -> duckdb.DuckDBPyConnection:
        """A session of its own, as `sql` has it.

        Args:
            memory: that its queries may use.
            threads: that its queries may use; all CPUs without.
        """
        return session.connect(
            self._files, self._manifest, lambda name: self.schema(name).names, memory, threads
        )

    @cached_property
    def _session(self) -> duckdb.DuckDBPyConnection:
        return self.connect()

    def ask(
        self,
        question: str,
        *,
        window: Window | str | None = None,
        interval: str | timedelta | None = None,
        count: int | None = None,
        **flags: Any,
    ) -> Answer:
        """Asks the program.

        Args:
            question: kind and verb: `io stats`.
            window: `(begin, end)` as for `table`, or text that the program reads (`op:17`,
                `+3s..+4s`).
            interval: one block of rows each (`1s`); count: so many intervals.
            flags: those of the program with `_` for `-`: `min_size=2`, `comm="apache*"`,
                `by=["comm", "op"]`, `no_tracer=True`. Lengths of time carry their unit or are a
                timedelta: `min="10ms"`. Times are as in a window: `at=rec.end_ns`.

        Raises:
            QuestionError: with the message and the hint of the program.
            ProgramError: the program is not installed.
        """
        return questions.ask(self._place, question, window, interval, count, flags)

    def kinds(self) -> dict[str, dict[str, str]]:
        """Kinds the program knows, with their verbs and what each is about."""
        return questions.kinds()

    def __getattr__(self, name: str) -> Kind:
        # Tools that look an object over ask for such names.
        if name.startswith("_"):
            raise AttributeError(name)
        found = questions.kind(name, self.ask)
        if found is None:
            raise AttributeError(
                f"a recording has no `{name}`, and the program `{program.find()}` knows no such "
                f"kind; it knows {', '.join(questions.kinds())}"
            )
        return found

    def __dir__(self) -> Iterable[str]:
        try:
            kinds = list(questions.kinds())
        except WhyslowError:
            kinds = []
        return [*super().__dir__(), *kinds]

    def close(self) -> None:
        """Closes its files; reading afterwards is an error."""
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
    """Opens a recording for reading: a folder `NAME.wsl`, or a file `NAME.wsl.tar.zst`, which is
    unpacked into a temporary folder until the recording is closed.

    Raises:
        RecordingError: there is none, or it is incomplete, damaged or of a later format.
    """
    return Recording(path)


def import_trace(
    *traces: str | os.PathLike[str], output: str | os.PathLike[str], force: bool = False
) -> Recording:
    """Turns traces into a recording and opens it.

    Args:
        traces: folders, files or archives; several are put on one clock.
        output: the recording to write (`NAME.wsl`).
        force: takes the place of a recording that is there already.

    Raises:
        QuestionError: the program refused, with its message and hint.
        ProgramError: the program is not installed.
    """
    words: list[str | bytes] = ["import", b"--output=" + os.fsencode(output)]
    if force:
        words.append("--force")
    words += ["--", *(os.fsencode(os.path.abspath(os.fspath(trace))) for trace in traces)]
    program.run(words)
    return Recording(output)
