"""SQL can read the whole recording and nothing else, and cannot write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from conftest import ROOT

import whyslow


def test_every_table_and_view_can_be_read(web: whyslow.Recording) -> None:
    views = {file.stem for file in (ROOT / "sql" / "views").glob("*.sql")}
    assert set(web.views) == views
    rows = web.sql("SELECT table_name FROM information_schema.tables").fetchall()
    assert {name for (name,) in rows} == views | set(web.tables)
    for name in views:
        count = web.sql(f"SELECT COUNT(*) AS n FROM {name}").fetchall()[0][0]
        # The trace has no stacks, lock waits, DNS lookups or function calls.
        missing = (
            "function_usage",
            "lock_usage",
            "stack_frame",
            "dns_usage",
            "file_fills",
            "request_phase_usage",
        )
        assert (count > 0) == (name not in missing), name
        for column in web.sql(f"SELECT * FROM {name} LIMIT 0").columns:
            assert column in web.views[name] or name == "io", (name, column)
    for name, about in web.tables.items():
        assert web.sql(f"SELECT COUNT(*) AS n FROM {name}").fetchall() == [(about.rows,)]


def test_answers_are_those_of_duckdb_alone(web: whyslow.Recording) -> None:
    alone = duckdb.connect()
    for name, about in web.tables.items():
        files = [str(web.path / file) for file in (*about.files, *about.long_files)]
        alone.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files!r})")
    for query in (
        "SELECT op, COUNT(*), SUM(dur), MAX(ts_end) FROM syscall GROUP BY op ORDER BY op",
        "SELECT id, path FROM syscall WHERE path IS NOT NULL ORDER BY dur DESC, id LIMIT 50",
        "SELECT s.comm, SUM(b.bytes) FROM block_io AS b JOIN thread AS s USING (utid) "
        "GROUP BY 1 ORDER BY 1 NULLS LAST",
    ):
        assert web.sql(query).fetchall() == alone.execute(query).fetchall()


def test_many_threads_read_what_one_reads(web: whyslow.Recording) -> None:
    query = (
        "SELECT op, SUM(hash(path)), SUM(hash(comm)), SUM(ts), SUM(hash(ret)) "
        "FROM syscall GROUP BY op ORDER BY op"
    )
    alone = web.connect(threads=1).execute(query).fetchall()
    many = web.connect(threads=8)
    for _ in range(5):
        assert many.execute(query).fetchall() == alone


def test_values_are_given_beside_the_text(web: whyslow.Recording) -> None:
    paths = web.sql("SELECT COUNT(*) AS n FROM syscall WHERE comm = ?", params=["x' OR '1'='1"])
    assert paths.fetchall() == [(0,)]


def test_a_wrong_statement_is_an_error_of_duckdb(web: whyslow.Recording) -> None:
    with pytest.raises(duckdb.Error, match="nonsense"):
        web.sql("SELECT nonsense FROM syscall")
    with pytest.raises(duckdb.Error):
        web.connect(memory="much")


def listing(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_nothing_outside_can_be_read_and_nothing_written(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make("o'[1]*.wsl")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    table = str(path / "syscall.parquet").replace("'", "''")
    before, home = listing(tmp_path), listing(Path(os.environ["HOME"]))
    secret = duckdb.sql("SELECT 'secret' AS a").to_arrow_table()
    assert secret.num_rows == 1
    with whyslow.open(path) as recording:
        session = recording.connect()
        for statement in (
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            f"COPY (SELECT 1) TO '{table}'",
            f"COPY (SELECT 1 AS a) TO '{table}' (FORMAT parquet, USE_TMP_FILE false)",
            "COPY (SELECT 1) TO 'whyslow://syscall.parquet'",
            "COPY (SELECT 1 AS a) TO 'whyslow://syscall.parquet' "
            "(FORMAT parquet, USE_TMP_FILE false)",
            "COPY (SELECT 1) TO 'whyslow://new.parquet' (USE_TMP_FILE false)",
            "COPY (SELECT 1) TO ':memory:' (USE_TMP_FILE false)",
            "COPY (SELECT 1) TO ':memory:.wal' (USE_TMP_FILE false)",
            f"COPY (SELECT 1) TO '{tmp_path}/:memory:.wal'",
            "COPY (SELECT 1) TO '/dev/stdout'",
            "EXPLAIN ANALYZE COPY (SELECT 1) TO 'out.csv'",
            f"ATTACH '{tmp_path}/x.db'",
            f"ATTACH '{table}' AS x",
            "ATTACH 'whyslow://new.db' AS x; CREATE TABLE x.t AS SELECT 1 AS a",
            f"EXPORT DATABASE '{tmp_path}/dump'",
            f"IMPORT DATABASE '{tmp_path}'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "LOAD '/tmp/x.duckdb_extension'",
            "SELECT a FROM read_csv('secret.csv')",
            "SELECT a FROM 'secret.csv'",
            f"SELECT a FROM read_csv('{tmp_path}/secret.csv')",
            "SELECT a FROM read_csv('file:secret.csv')",
            "SELECT content FROM read_text('whyslow://../secret.csv')",
            f"SELECT content FROM read_text('whyslow://{tmp_path}/secret.csv')",
            "SELECT content FROM read_text('whyslow://manifest.json')",
            "SELECT content FROM read_text('/proc/self/environ')",
            "SELECT file FROM glob('/etc/*')",
            "SELECT file FROM glob('*')",
            "SELECT a FROM read_csv('http://127.0.0.1:9/x.csv')",
            "SELECT a FROM secret",
            "SELECT getenv('HOME')",
            "SET enable_external_access = true",
            "RESET enable_external_access",
            "SET allowed_paths = ['/etc/passwd']",
            "SET lock_configuration = false",
            "SET memory_limit = '1TB'",
            "SET python_enable_replacements = true",
            "SET temp_directory = '/tmp'",
            "SET profiling_output = 'out'",
            "PRAGMA enable_profiling = 'json'",
            "CALL enable_logging(storage_path = 'out')",
            "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
            "INSERT INTO syscall (id) VALUES (1)",
            "DELETE FROM syscall",
        ):
            try:
                rows = session.execute(statement).fetchall()
            except duckdb.Error:
                rows = None
            assert rows is None, statement
            assert listing(tmp_path) == before, statement
        result = recording.sql("SELECT 1 AS a")
        for name in ("to_parquet", "to_csv", "write_parquet", "write_csv"):
            write = getattr(result, name, None)
            if write is not None:
                with pytest.raises(duckdb.Error):
                    write(f"{tmp_path}/out")
        assert session.execute("SELECT COUNT(*) AS n FROM syscall").fetchall() == [(7,)]
    assert listing(tmp_path) == before
    assert listing(Path(os.environ["HOME"])) == home


def test_a_recording_without_a_table_still_answers(make: Callable[..., Path]) -> None:
    """Recordings of older versions lack current tables."""
    import json

    path = make()
    about = json.loads((path / "manifest.json").read_text())
    del about["tables"]["thread_state"], about["tables"]["lost_events"]
    (path / "manifest.json").write_text(json.dumps(about))
    with whyslow.open(path) as recording:
        assert recording.losses == ()
        assert recording.sql("SELECT op FROM io_stats ORDER BY op").fetchall()
        with pytest.raises(duckdb.CatalogException):
            recording.sql("SELECT utid FROM thread_time")
