"""Queries of a lake: `whyslow.fleet.open`."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import views
from ..errors import QueryError
from ..times import Window, moment_text, window_ns
from . import caveats
from .answer import FleetAnswer, guessed, measured
from .contract import COMMITS, LAYOUT, SCHEMAS, TIMED
from .duck import DuckEngine
from .lake import Part, Selection, nothing_in, select
from .queries import Query, parameter_row, queries, query, tables_of
from .reader import read_table, recordings_in
from .spark import SparkEngine, is_master
from .spark import session as spark_session
from .store import Store

_SECOND = 1_000_000_000
#: Queries that share the caveats of another one.
_CAVEATS_OF = {"culprits": "verdicts"}
_SIZES = {"K": 10, "M": 20, "G": 30, "T": 40}

_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CLASSES = """SELECT DISTINCT r.op
FROM {table} AS r
CROSS JOIN parameters AS a
WHERE a.kind IS NULL OR r.kind = a.kind
ORDER BY r.op"""

Progress = Callable[[str], None]


class Fleet:
    """Recordings of a lake, selected by window, hosts and cluster; created by `open_fleet`."""

    def __init__(
        self,
        store: Store,
        selection: Selection,
        recordings: pa.Table,
        window: tuple[int | None, int | None],
        exact: tuple[int | None, int | None],
        engine: str,
        memory: str,
        threads: int | None,
        progress: Progress | None,
    ):
        self._store = store
        self._selection = selection
        self._recordings = recordings
        self._window = window
        self._exact = exact
        self._engine = engine
        self._memory = memory
        self._threads = threads
        self._progress = progress
        self._read: dict[str, tuple[dict[str, Any], pa.Table]] = {}
        self._raw: dict[str, set[str]] = {}

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name."""
        return queries()

    @property
    def recordings(self) -> pa.Table:
        """The selected recordings: their rows of the table `recording`."""
        return self._recordings

    @property
    def hosts(self) -> list[str]:
        """The selected hosts."""
        return sorted(set(self._recordings["host"].to_pylist()))

    @property
    def tables(self) -> list[str]:
        """Tables that SQL may read, including those of recordings pushed with `--raw`."""
        return [*SCHEMAS, *self._raw_tables()]

    def query(self, name: str, **parameters: Any) -> FleetAnswer:
        """Runs a query of `sql/fleet/`.

        Args:
            parameters: parameters of the query, see `queries[name].parameters`.

        Raises:
            QueryError: no such query or parameter, or an invalid value.
            LakeError: the lake cannot be read.
        """
        started = time.monotonic()
        by = parameters.get("by")
        found = query(name, None if by is None else str(by))
        row = parameter_row(found, parameters, self._window, self._exact)
        gaps = views.fleet("caveats").get(_CAVEATS_OF.get(name, name))
        texts = [found.text] if gaps is None else [found.text, gaps]
        if name == "rollout":
            self._check_sides(row)
        self._check_label(row)
        engine = self._started(texts, row)
        try:
            table = engine.sql(found.text)
            notes = [] if gaps is None else caveats.of_gaps(engine.sql(gaps).to_pylist())
            if row["op"] is not None and not table.num_rows:
                found_ops = engine.sql(_CLASSES.format(table=_table_of_ops(found.text)))
                notes += caveats.of_classes(row["kind"], row["op"], found_ops["op"].to_pylist())
        finally:
            engine.close()
        measures = {column.name: column.measure for column in found.columns}
        reads_rows = bool({"rollup", "histogram"} & tables_of(found.text))
        notes = [*self._caveats(row["kind"], reads_rows), *notes]
        facts = self._facts(engine.name, started)
        return FleetAnswer(
            name, found.title, measured(table, measures), tuple(notes), facts, measures
        )

    def sql(self, text: str) -> FleetAnswer:
        """The rows of a custom SQL statement on the tables of the lake and the steps of
        `sql/fleet/steps/`.

        Raises:
            QueryError: the engine rejected it.
            LakeError: the lake cannot be read.
        """
        started = time.monotonic()
        if not _COMMENTS.sub("", text).strip(" \t\r\n;"):
            raise QueryError("the statement is empty", hint="pass one: SELECT … FROM operation")
        own = Query("sql", "custom SQL", "", text, (), ())
        row = parameter_row(own, {}, self._window, self._exact)
        engine = self._started([text], row)
        try:
            table = engine.sql(text)
        except QueryError as error:
            lacking = [name for name in self._tables_of([text]) if not self._parts(name)]
            if lacking and error.hint is None:
                error.hint = (
                    f"push recordings with --raw: none of these has the table {', '.join(lacking)}"
                )
            raise
        finally:
            engine.close()
        measures = guessed(table)
        notes = self._caveats(None, reads_rows=True)
        if self._window != (None, None):
            notes.append(
                "limited to recordings of the window; tables other than `operation` and `length` "
                "contain the rows of its whole seconds"
            )
        facts = self._facts(engine.name, started)
        return FleetAnswer(
            "sql",
            "custom SQL",
            measured(table, measures),
            tuple(notes),
            facts,
            measures,
        )

    def recording(self, row: Mapping[str, Any] | str) -> dict[str, Any]:
        """The location of a recording, for further analysis.

        Args:
            row: row of an answer with a column `recording`, or a recording id.

        Returns:
            `recording`, `host`, `origin` (its path when it was pushed, or None), and `command`,
            which explains it (None if the origin is unknown).

        Raises:
            QueryError: no such recording in the selection.
        """
        wanted = row if isinstance(row, str) else row.get("recording")
        found = self._recordings.filter(pc.field("recording") == wanted).to_pylist()
        if wanted is None or not found:
            raise QueryError(
                f"no recording `{wanted}` in the selection",
                hint="open the lake with a longer window or more hosts",
            )
        one = found[0]
        row_id = None if isinstance(row, str) else row.get("id")
        _, _, path = (one["origin"] or "").partition(":")
        words_of = ["whyslow", "explain", path]
        if row_id:
            words_of += ["-w", str(row_id)]
        return {
            "recording": one["recording"],
            "host": one["host"],
            "origin": one["origin"],
            "command": shlex.join(words_of) if path else None,
        }

    def _caveats(self, kind: str | None, reads_rows: bool) -> list[str]:
        return [
            *caveats.of_selection(self._selection, self._window),
            *caveats.of_recordings(self._recordings, kind, reads_rows),
        ]

    def _check_sides(self, row: Mapping[str, Any]) -> None:
        """Checks that the split of `rollout` is unambiguous and has data on both sides."""
        at, by = row["at_ns"], (row["label"], row["value"])
        ways = (
            "pass `at` (--at 2026-03-01T12:00:00Z), or `label` and `value` (--label version "
            "--value 2.1)"
        )
        if at is None and None in by:
            raise QueryError("`rollout` needs `at`, or `label` and `value`", hint=ways)
        if at is None:
            return
        if by != (None, None):
            raise QueryError("`rollout` accepts `at`, or `label` and `value`, not both", hint=ways)
        begin, end = self._window
        first = max(pc.min(self._recordings["ts"]).as_py(), begin or 0)
        last = pc.max(self._recordings["ts_end"]).as_py()
        last = last if end is None else min(last, end)
        # A second counts as after if it starts at `at` or later.
        if not first // _SECOND * _SECOND < at <= (last - 1) // _SECOND * _SECOND:
            raise QueryError(
                f"no recordings on one side of {moment_text(at)}",
                hint="choose a time within the recordings and the window: from "
                f"{moment_text(first)} to {moment_text(last)}",
            )

    def _check_label(self, row: Mapping[str, Any]) -> None:
        """Rejects a label or value that no host has, which is likely a typo."""
        for name in ("label", "within"):
            label = row[name]
            if label is None:
                continue
            table = self._table("label", {})
            known = sorted(set(table["name"].to_pylist()))
            if label not in known:
                raise QueryError(
                    f"no host has a label `{label}`",
                    hint=f"labels: {', '.join(known) or 'none'}; push with --label {label}=…",
                )
        if row["value"] is None or row["label"] is None:
            return
        table = self._table("label", {})
        named = table.filter(pc.equal(table["name"], row["label"]))
        known = sorted(set(named["value"].to_pylist()))
        if row["value"] not in known:
            raise QueryError(
                f"no host has the label `{row['label']}` with value `{row['value']}`",
                hint=f"values: {caveats.names(known)}",
            )

    def _started(self, texts: Sequence[str], row: Mapping[str, Any]) -> DuckEngine | SparkEngine:
        read = self._tables_of(texts)
        conditions = {table: _condition(table, row) for table in read if table in TIMED}
        report = (
            None if self._progress is None else (lambda step: self._report(f"computing {step}"))
        )
        if self._engine == "duckdb":
            tables = {}
            for table in read:
                # The columns of a `--raw` table that no recording has are unknown.
                if not self._parts(table):
                    continue
                tables[table] = self._table(table, conditions.get(table, {}))
            return DuckEngine(tables, row, self._half_memory(), self._threads, report)
        spark = spark_session(self._engine, self._memory, self._threads)
        parts = {table: self._parts(table) for table in read}
        return SparkEngine(spark, self._engine, self._store, parts, conditions, row, report)

    def _tables_of(self, texts: Sequence[str]) -> list[str]:
        found: set[str] = set()
        for text in texts:
            found |= tables_of(text)
        listed = [table for table in SCHEMAS if table in found]
        return [*listed, *(table for table in self._raw_tables() if table in found)]

    def _table(self, name: str, condition: dict[str, Any]) -> pa.Table:
        if name == "recording":
            return self._recordings
        kept = self._read.get(name)
        if kept is not None and kept[0] == condition:
            return kept[1]
        progress = None
        if self._progress is not None:
            progress = self._count
        table = read_table(
            self._store,
            name,
            self._parts(name),
            _expression(condition),
            progress,
            self._bytes_max(),
        )
        self._read[name] = (condition, table)
        return table

    def _parts(self, table: str) -> list[Part]:
        if table in SCHEMAS:
            return self._selection.parts(table)
        if table not in self._raw:
            listed = self._store.list(f"{LAYOUT}/{table}", recursive=True)
            self._raw[table] = {name for name, _ in listed}
        return self._selection.parts(table, self._raw[table])

    def _raw_tables(self) -> list[str]:
        names = self._store.list(LAYOUT, recursive=False)
        return [name for name, is_file in names if not is_file and name not in {*SCHEMAS, COMMITS}]

    def _facts(self, engine: str, started: float) -> dict[str, Any]:
        reads = self._store.reads
        is_spark = engine != "duckdb"
        return {
            "lake": self._store.url,
            "engine": engine,
            "recordings": self._recordings.num_rows,
            "recordings_left_out": self._selection.committed - self._recordings.num_rows,
            "hosts": len(set(self._recordings["host"].to_pylist())),
            "lost": _lost(self._recordings),
            # Spark does not report its reads.
            "files": None if is_spark else reads.files,
            "requests": None if is_spark else reads.requests,
            "bytes_read": None if is_spark else reads.bytes,
            "window": [*self._window],
            "seconds": round(time.monotonic() - started, 3),
        }

    def _count(self, table: str, done: int, files: int) -> None:
        if done == files or done % 200 == 0:
            self._report(f"reading {table}: {done} of {files} files")

    def _report(self, text: str) -> None:
        if self._progress is not None:
            self._progress(text)

    def _bytes_max(self) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", self._memory)
        if found is None:
            raise QueryError(
                f"invalid memory size `{self._memory}`", hint="use a size such as 4GiB"
            )
        return int(float(found[1]) * 2 ** (_SIZES[found[2]] - 1))

    def _half_memory(self) -> str:
        """Half of the memory is for the rows, half for DuckDB."""
        return f"{self._bytes_max() >> 20}MiB"

    def __repr__(self) -> str:
        return (
            f"<fleet {self._store.url}: {self._recordings.num_rows} recordings of "
            f"{len(self.hosts)} hosts, on {self._engine}>"
        )


def _lost(recordings: pa.Table) -> dict[str, int] | None:
    """Number of lost events, as far as known, and the time range of the affected recordings."""
    losers = recordings.filter(pc.greater(recordings["losses"], 0))
    if losers.num_rows == 0:
        return None
    return {
        "events": pc.sum(losers["lost_events"]).as_py(),
        "begin_ns": pc.min(losers["ts"]).as_py(),
        "end_ns": pc.max(losers["ts_end"]).as_py(),
    }


def open_fleet(
    lake: str,
    *,
    window: Window | None = None,
    hosts: str | Sequence[str] = (),
    cluster: str | None = None,
    engine: str = "duckdb",
    memory: str = "4GiB",
    threads: int | None = None,
    progress: Progress | None = None,
    passing: bool = False,
) -> Fleet:
    """Opens a lake.

    Args:
        lake: a folder, or `file:///…`, `s3://BUCKET/…`, `gs://BUCKET/…`, `az://CONTAINER/…`.
        window: start and end; extended to whole seconds, the resolution of the lake, except for
            the slowest operations.
        hosts: globs (`web-*`); default all.
        cluster: a glob; default all.
        engine: `duckdb`, or a Spark master: `local[*]`, `spark://…`, `sc://…`, `yarn`, `k8s://…`.
        memory: memory limit of this process (`4GiB`).
        threads: number of threads; default all CPUs.
        progress: called with progress messages.
        passing: whether the lake is temporary, so that hints do not name it.

    Raises:
        LakeError: the lake does not exist or cannot be read.
        QueryError: no recordings match, or the engine is unknown.
    """
    if engine != "duckdb" and not is_master(engine):
        raise QueryError(
            f"unknown engine `{engine}`",
            hint="use duckdb, or a Spark master: local[*], spark://HOST:7077, sc://HOST, yarn, "
            "k8s://…",
        )
    exact = window_ns(window) if window is not None else (None, None)
    seconds = _whole_seconds(exact)
    globs = [hosts] if isinstance(hosts, str) else list(hosts)
    store = Store(lake)
    if progress is not None:
        progress("listing the lake")
    selection, recordings = recordings_in(store, select(store, seconds, globs, cluster), seconds)
    if not selection.committed and seconds == (None, None) and cluster is None:
        # Folders of days remain after all their recordings expired.
        raise nothing_in(store)
    if not recordings.num_rows:
        raise QueryError(
            "no recordings in the lake match",
            causes=[
                f"checked {selection.committed} recordings, of the days "
                f"{', '.join(selection.days) or '(none)'}"
            ],
            hint="list the hosts without window, hosts and cluster: whyslow fleet hosts "
            + ("RECORDING…" if passing else f"--lake {lake}"),
        )
    recordings = recordings.sort_by([("host", "ascending"), ("recording", "ascending")])
    return Fleet(store, selection, recordings, seconds, exact, engine, memory, threads, progress)


def _table_of_ops(text: str) -> str:
    """A table with classes of operations that a statement reads."""
    return "rollup" if "rollup" in tables_of(text) else "slowest"


def _whole_seconds(window: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    begin, end = window
    return (
        None if begin is None else begin // _SECOND * _SECOND,
        None if end is None else -(-end // _SECOND) * _SECOND,
    )


def _condition(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Condition on the rows that a query needs, so that others are not decoded."""
    condition: dict[str, Any] = {}
    if row["begin_ns"] is not None:
        condition["from_ns"] = row["begin_ns"]
    if row["end_ns"] is not None:
        condition["to_ns"] = row["end_ns"]
    if table in ("rollup", "histogram") and row["row_limit"] is not None:
        # The rows of dimension `all` determine which recording counts.
        wanted = {row["dimension"]} | ({"all"} if table == "rollup" else set())
        condition["dimension"] = sorted(wanted)
        if row["kind"] is not None:
            condition["kind"] = [row["kind"]]
    return condition


def _expression(condition: Mapping[str, Any]) -> pc.Expression | None:
    whole = None
    for column, value in condition.items():
        if column == "from_ns":
            one = pc.field("ts") >= value
        elif column == "to_ns":
            one = pc.field("ts") < value
        elif len(value) == 1:
            one = pc.field(column) == value[0]
        else:
            one = pc.field(column).isin(value)
        whole = one if whole is None else whole & one
    return whole
