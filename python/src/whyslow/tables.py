"""Tables of a recording as Arrow.

A table consists of main files, sorted by time, and possibly of files with rows that arrived too
late for their position (`<table>_long`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from . import renamed
from .errors import QueryError, RecordingError
from .files import RecordingFiles
from .manifest import Manifest, TableInfo
from .times import Window, window_ns


class TableReader:
    """Reads tables; file footers are cached."""

    def __init__(self, files: RecordingFiles, manifest: Manifest):
        self._files = files
        self._manifest = manifest
        self._datasets: dict[str, ds.FileSystemDataset] = {}

    def schema(self, name: str) -> pa.Schema:
        """Columns and types, also for a table without rows.

        Raises:
            QueryError: the recording has no such table.
            RecordingError: its files are damaged.
        """
        return self._of_today(name, self._dataset(name).schema)

    def read(
        self, name: str, columns: Sequence[str] | None = None, window: Window | None = None
    ) -> pa.Table:
        """Rows in order of time, then id.

        Args:
            columns: names, in the requested order; default all.
            window: only rows that overlap it. Rows without an end extend to the end of the
                recording.

        Raises:
            QueryError: no such table or column, or a window for a table without times.
            RecordingError: its files are damaged.
        """
        dataset = self._dataset(name)
        schema = self._of_today(name, dataset.schema)
        wanted = schema.names if columns is None else _listed(columns)
        for column in wanted:
            if column not in schema.names:
                raise QueryError(
                    f"table `{name}` has no column `{column}`; columns: {', '.join(schema.names)}"
                )
        rows_condition = None if window is None else _overlaps(name, schema, window)
        # Sorting is needed only to merge two sorted sequences.
        keys = _sort_keys(schema) if self._manifest.tables[name].long_files else []
        read = [*wanted, *(key for key in keys if key not in wanted)]
        version = self._manifest.format_version
        in_files = {new: old for old, new in renamed.new_columns(version, name).items()}
        columns_read = (
            {column: pc.field(in_files.get(column, column)) for column in read}
            if in_files
            else read
        )
        try:
            table = dataset.to_table(columns=columns_read, filter=rows_condition)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(name, str(error)) from error
        if keys:
            table = table.sort_by([(key, "ascending") for key in keys])
        table = table.select(wanted)
        for place, column in enumerate(wanted):
            words = renamed.new_words(version, name, column)
            if words:
                texts = renamed.replace_words(table.column(place), words)
                table = table.set_column(place, table.field(place), texts)
        return table

    def _of_today(self, name: str, schema: pa.Schema) -> pa.Schema:
        return renamed.schema_of_today(self._manifest.format_version, name, schema)

    def _dataset(self, name: str) -> ds.FileSystemDataset:
        info = self._manifest.tables.get(name)
        if info is None:
            raise QueryError(
                f"no table `{name}` in this recording; tables: {', '.join(self._manifest.tables)}"
            )
        if name not in self._datasets:
            try:
                self._datasets[name] = self._open(name, info)
            except (pa.ArrowException, OSError) as error:
                raise self._damaged(name, str(error)) from error
        return self._datasets[name]

    def _open(self, name: str, info: TableInfo) -> ds.FileSystemDataset:
        form = ds.ParquetFileFormat()
        fragments = [
            form.make_fragment(pa.PythonFile(self._files.open(file), mode="r"))
            for file in (*info.files, *info.long_files)
        ]
        if not fragments:
            raise self._damaged(name, "it has no files")
        rows = sum(fragment.metadata.num_rows for fragment in fragments)
        if rows != info.rows:
            raise self._damaged(name, f"its files have {rows} rows, the manifest lists {info.rows}")
        return ds.FileSystemDataset(fragments, fragments[0].physical_schema, form)

    def _damaged(self, name: str, reason: str) -> RecordingError:
        return RecordingError(
            f"table `{name}` in `{self._files.shown}` is damaged: {reason}",
            hint="import the trace again, with --force",
        )


def _listed(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str):
        raise QueryError(f"columns must be a list: ['{columns}']")
    return list(columns)


def _sort_keys(schema: pa.Schema) -> list[str]:
    keys = ["ts", *schema.names[:1]] if "ts" in schema.names else schema.names[:1]
    return list(dict.fromkeys(keys))


def _overlaps(name: str, schema: pa.Schema, window: Window) -> pc.Expression | None:
    """The same condition as in the program: an interval of zero length counts at its start."""
    begin_ns, end_ns = window_ns(window)
    if "ts" not in schema.names:
        raise QueryError(f"table `{name}` has no time column to filter by a window")
    ts = pc.field("ts")
    conditions = []
    if end_ns is not None:
        conditions.append(ts < pa.scalar(end_ns, pa.int64()))
    if begin_ns is not None:
        begin = pa.scalar(begin_ns, pa.int64())
        if "ts_end" in schema.names:
            ts_end = pc.field("ts_end")
            at_once = (ts_end == ts) & (ts >= begin)
            conditions.append(ts_end.is_null() | (ts_end > begin) | at_once)
        else:
            conditions.append(ts >= begin)
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1]
