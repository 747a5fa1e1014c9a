"""Reads tables of a lake as Arrow, with many threads.

A lake of a thousand hosts has thousands of small files. Each is read in one request and decoded by
Arrow with dictionary-encoded text: this takes a third of the time and half of the memory that
DuckDB needs for the same files. Of large files, as compactions write them, only row groups with
matching statistics are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..errors import LakeError
from .contract import RENAMED, SCHEMAS
from .lake import Part, Selection
from .store import Store, is_gone, is_of_store

#: Files up to this size are read whole: a request costs more than the unneeded bytes.
_WHOLE_BYTES = 1 << 20
#: Requests in flight, for remote stores; decoding is limited by the number of CPUs.
_AT_ONCE = 16

Progress = Callable[[str, int, int], None]


def read_table(
    store: Store,
    table: str,
    parts: Sequence[Part],
    rows: pc.Expression | None = None,
    progress: Progress | None = None,
    bytes_max: int | None = None,
) -> pa.Table:
    """Rows of a table that match a condition, in the order of the parts.

    Args:
        rows: condition on columns of the table.
        progress: called with the table, the files read and the number of files.
        bytes_max: memory limit for the rows.

    Raises:
        LakeError: a file is missing or damaged, or there are too many rows.
    """
    schema = SCHEMAS.get(table)
    tables: list[pa.Table] = []
    size = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reads = pool.map(lambda part: _read(store, table, part, rows, schema), parts)
        for number, read in enumerate(reads, 1):
            size += read.nbytes
            if bytes_max is not None and size > bytes_max:
                pool.shutdown(wait=False, cancel_futures=True)
                raise LakeError(
                    f"the rows of `{table}` exceed {bytes_max >> 20} MiB",
                    hint="narrow the query (-w, --hosts, --kind), raise --memory, or use Spark "
                    "(--engine spark://…)",
                )
            tables.append(read)
            if progress is not None:
                progress(table, number, len(parts))
    if not tables:
        return (schema or pa.schema([])).empty_table()
    return pa.concat_tables(tables, promote_options="permissive" if schema is None else "none")


def _read(
    store: Store, table: str, part: Part, rows: pc.Expression | None, schema: pa.Schema | None
) -> pa.Table:
    if part.only is not None:
        chosen = pc.field("recording").isin(sorted(part.only))
        rows = chosen if rows is None else rows & chosen
    try:
        with store.open(part.file) as file:
            source = file
            if file.size() <= _WHOLE_BYTES:
                content = file.read_buffer()
                store.reads.add(requests=1, size=content.size, files=1)
                source = pa.BufferReader(content)
            return _decoded(store, source, table, source is file, rows, schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_gone(error):
            raise LakeError(
                f"file `{part.file}` of the lake `{store.url}` is missing, although its commit "
                "exists",
                hint=f"retry if the lake was compacted meanwhile; else {_remedy(part.file)}",
            ) from None
        if is_of_store(error):
            raise store.unreadable(part.file, error) from error
        raise LakeError(
            f"`{part.file}` in the lake `{store.url}` is damaged",
            causes=[str(error)],
            hint=_remedy(part.file),
        ) from error


def _remedy(file: str) -> str:
    if file.rsplit("/", 1)[-1].startswith("@"):
        # A push does not replace rows of a compacted file.
        return (
            "restore the compacted file from a copy of the lake, or drop its day "
            "(whyslow fleet expire)"
        )
    return "push the recording again, with --replace"


def _decoded(
    store: Store,
    source: pa.NativeFile,
    table: str,
    is_large: bool,
    rows: pc.Expression | None,
    schema: pa.Schema | None,
) -> pa.Table:
    found = pq.read_schema(source) if schema is None else schema
    texts = [column.name for column in found if pa.types.is_string(column.type)]
    former = [] if schema is None else [old for old, _ in RENAMED.get(table, {}).values()]
    source.seek(0)
    # Columns that a file of a former version lacks cannot be read as dictionaries.
    in_file = pq.read_schema(source).names if former else found.names
    dictionaries = [name for name in texts if name in in_file]
    source.seek(0)
    if not is_large and schema is not None:
        read = pq.ParquetFile(source, read_dictionary=dictionaries).read(
            columns=[*schema.names, *former], use_threads=False
        )
        read = _checked(_of_today(read, table), schema, texts)
        return read if rows is None else read.filter(rows)
    form = ds.ParquetFileFormat(dictionary_columns=dictionaries)
    groups = form.make_fragment(source)
    if rows is not None:
        # By their statistics, which Arrow compares with plain text only, not with dictionaries.
        plain = ds.ParquetFileFormat().make_fragment(source)
        kept = plain.subset(rows, schema=plain.physical_schema).row_groups
        groups = groups.subset(row_group_ids=[group.id for group in kept])
    names = [name for name in (*found.names, *former) if name in in_file]
    if is_large:
        metadata = groups.metadata
        read_bytes = 0
        for group in groups.row_groups:
            chunks = metadata.row_group(group.id)
            for number in range(chunks.num_columns):
                chunk = chunks.column(number)
                if chunk.path_in_schema in names:
                    read_bytes += chunk.total_compressed_size
        # The footer is read once to select row groups, and once to read them.
        requests = (1 if rows is None else 2) + len(groups.row_groups)
        store.reads.add(requests=requests, size=read_bytes, files=1)
    read = groups.to_table(
        schema=groups.physical_schema, columns=names, filter=rows, use_threads=False
    )
    return read if schema is None else _checked(_of_today(read, table), schema, texts)


def _of_today(read: pa.Table, table: str) -> pa.Table:
    """The table with the names and words of today."""
    for new, (old, words) in RENAMED.get(table, {}).items():
        if new in read.column_names or old not in read.column_names:
            continue
        place = read.column_names.index(old)
        texts = read.column(place).cast(pa.string())
        # All at once: a new word may be another old one.
        renewed = pa.array([words.get(text, text) for text in texts.to_pylist()], pa.string())
        read = read.set_column(place, new, pa.chunked_array([renewed.dictionary_encode()]))
    return read


def _checked(read: pa.Table, schema: pa.Schema, texts: list[str]) -> pa.Table:
    """The table with the types of the contract, text as dictionaries.

    Raises:
        ValueError: a column is missing or of another type.
    """
    wanted = []
    for column in schema:
        if column.name not in read.column_names:
            raise ValueError(f"no column `{column.name}`: written by another version")
        kind = column.type
        if column.name in texts:
            kind = pa.dictionary(pa.int32(), pa.string())
        wanted.append(pa.field(column.name, kind))
    return read.select(schema.names).cast(pa.schema(wanted))


def recordings_in(
    store: Store, selection: Selection, window: tuple[int | None, int | None]
) -> tuple[Selection, pa.Table]:
    """Recordings that overlap a window, with their rows of the table `recording`."""
    table = read_table(store, "recording", selection.parts("recording"))
    table = table.cast(SCHEMAS["recording"])
    begin_ns, end_ns = window
    if end_ns is not None:
        table = table.filter(pc.field("ts") < end_ns)
    if begin_ns is not None:
        table = table.filter(pc.field("ts_end") > begin_ns)
    # A file may contain other recordings than its name indicates.
    keys = {entry.key for entry in selection.entries}
    names = zip(table["host"].to_pylist(), table["recording"].to_pylist(), strict=True)
    table = table.filter(pa.array([key in keys for key in names], pa.bool_()))
    kept = selection.keep(table["recording"].to_pylist())
    if begin_ns is None and end_ns is None and len(kept.entries) != len(selection.entries):
        ids = {entry.recording for entry in selection.entries}
        lost = sorted(ids - {entry.recording for entry in kept.entries})
        first = next(entry.place for entry in selection.entries if entry.recording == lost[0])
        raise LakeError(
            f"the lake `{store.url}` has commits of recordings that are missing in its files",
            causes=lost[:3],
            hint=_remedy(first),
        )
    return kept, table
