"""Queries on Apache Spark: on a cluster, or on threads of this machine (`local[*]`).

The Spark workers read the files; only the answer is transferred here. The SQL is the same as for
DuckDB. Steps that several others read are cached by the workers, and recomputed if a worker is
lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import views
from ..errors import LakeError, MissingPackageError, QueryError
from .contract import RENAMED, SCHEMAS
from .duck import plain
from .lake import Part
from .queries import PARAMETER_COLUMNS, steps_of
from .store import Store

_HINT = "pip install 'whyslow[spark]', and install Java 17 or later: apt install default-jre"
_DDL = {
    pa.string(): "STRING",
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
}
_PARAMETER_DDL = {
    "text": "STRING",
    "whole": "BIGINT",
    "time": "BIGINT",
    "duration": "BIGINT",
    "real": "DOUBLE",
    "flag": "BOOLEAN",
}
_MASTER = re.compile(r"local(\[.*\])?|yarn|(spark|sc|k8s|mesos)://.+")


def is_master(engine: str) -> bool:
    """Whether the engine is a Spark master."""
    return _MASTER.fullmatch(engine) is not None


def session(master: str, memory: str | None = None, threads: int | None = None) -> Any:
    """A Spark session; the existing one of this process, if any.

    Raises:
        MissingPackageError: PySpark or Java is missing.
        QueryError: the master does not respond.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingPackageError(
            f"engine `{master}` needs PySpark, which is not installed",
            causes=[str(error)],
            hint=_HINT,
        ) from error
    builder = SparkSession.builder.appName("whyslow")
    for name, value in _settings(master, memory, threads).items():
        builder = builder.config(name, value)
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    with _quiet() as output:
        try:
            return builder.getOrCreate()
        except Exception as error:  # Py4J, gRPC and PySpark have unrelated exceptions.
            causes = [line for line in [str(error).split("\n")[0], *output()] if line]
            missing = "JAVA_GATEWAY" in str(error) or "JAVA_HOME" in " ".join(output())
            raise QueryError(
                f"failed to start Spark on `{master}`",
                causes=causes[:3],
                hint=_HINT if missing else "check that the master runs and has workers",
            ) from error


def _settings(master: str, memory: str | None, threads: int | None) -> dict[str, str]:
    if master.startswith("sc://"):
        return {"spark.sql.session.timeZone": "UTC"}
    log = Path(__file__).with_name("log4j2.properties")
    made = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()}",
        # Integers stay integers, and overflow is an error.
        "spark.sql.ansi.enabled": "true",
    }
    if memory is not None:
        amount = re.fullmatch(r"(\d+)\s*([KMGT])i?B?", memory)
        if amount is None:
            raise QueryError(f"invalid memory size `{memory}`", hint="use a size such as 4GiB")
        made["spark.driver.memory"] = made["spark.executor.memory"] = amount[1] + amount[2].lower()
    if master.startswith("local"):
        cpus = threads or os.cpu_count() or 1
        made["spark.sql.shuffle.partitions"] = str(cpus)
        # A job per file costs more than listing the files here.
        made["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "100000"
        made["spark.driver.host"] = made["spark.driver.bindAddress"] = "127.0.0.1"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        made["spark.hadoop.fs.s3a.endpoint"] = endpoint
        made["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return made


@contextlib.contextmanager
def _quiet() -> Iterator[Callable[[], list[str]]]:
    """Redirects stderr, also of child processes, to a file instead of the terminal."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:

            def output() -> list[str]:
                file.seek(0)
                return file.read().decode("utf-8", "replace").split("\n")

            yield output
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class SparkEngine:
    """Selected tables of a lake on Spark."""

    def __init__(
        self,
        spark: Any,
        master: str,
        store: Store,
        parts: Mapping[str, Sequence[Part]],
        conditions: Mapping[str, Mapping[str, Any]],
        parameters: Mapping[str, Any],
        on_step: Callable[[str], None] | None = None,
    ):
        self.name = master
        self._spark = spark
        self._on_step = on_step
        self._made: dict[str, Any] = {}
        try:
            for table, files in parts.items():
                frame = self._table(store, table, files)
                frame = _filtered(frame, conditions.get(table, {}))
                frame.createOrReplaceTempView(table)
            # As a statement, its single row is known to the planner, so that joins are cheap.
            row = ", ".join(
                f"CAST(:{name} AS {_PARAMETER_DDL[kind]}) AS {name}"
                for name, kind in PARAMETER_COLUMNS
            )
            values = {name: parameters[name] for name, _ in PARAMETER_COLUMNS}
            spark.sql(f"SELECT {row}", args=values).createOrReplaceTempView("parameters")
        except Exception as error:
            raise _failed(error) from error

    def prepare(self, text: str) -> None:
        """Creates the steps that a statement reads."""
        steps = steps_of(text)
        texts = views.fleet("steps")
        for step in steps:
            if step in self._made:
                continue
            if self._on_step is not None:
                self._on_step(step)
            frame = self._spark.sql(texts[step])
            # Without caching, a statement that reads a step twice computes it twice.
            if step != "operation":
                frame = self._kept(frame)
            frame.createOrReplaceTempView(step)
            self._made[step] = frame

    def sql(self, text: str) -> pa.Table:
        """The rows of a statement.

        Raises:
            QueryError: Spark rejected it, or failed.
        """
        try:
            self.prepare(text)
            return plain(self._spark.sql(text).toArrow())
        except Exception as error:
            raise _failed(error) from error

    def close(self) -> None:
        """Releases the cached steps; the session stays open."""
        for frame in self._made.values():
            frame.unpersist()
        self._made.clear()

    def _kept(self, frame: Any) -> Any:
        """Caches a step, and plans it separately: Spark takes minutes to plan all steps at once.

        The rows keep their lineage, so that those of a lost worker can be recomputed; only the plan
        is dropped. Spark Connect does not support this.
        """
        try:
            from pyspark.sql import DataFrame

            session = self._spark._jsparkSession
            rows = frame._jdf.queryExecution().toRdd()
            made = session.internalCreateDataFrame(rows, frame._jdf.schema(), False)
            return DataFrame(made, self._spark).cache()
        except (AttributeError, ImportError):
            return frame.cache()

    def _table(self, store: Store, table: str, parts: Sequence[Part]) -> Any:
        schema = SCHEMAS.get(table)
        # A name may contain glob characters, and folders are not partition columns.
        reader = self._spark.read.option("__globPaths__", "false")
        reader = reader.option("recursiveFileLookup", "true")
        if schema is None:
            reader = reader.option("mergeSchema", "true")
        else:
            columns = ", ".join(f"{field.name} {_DDL[field.type]}" for field in schema)
            former = "".join(f", {old} STRING" for old, _ in RENAMED.get(table, {}).values())
            reader = reader.schema(columns + former)
        groups: dict[frozenset[str] | None, list[str]] = {}
        for part in parts:
            groups.setdefault(part.only, []).append(store.spark_url(part.file))
        if not groups:
            return self._spark.createDataFrame([], columns if schema is not None else "nothing INT")
        frames = []
        for only, files in groups.items():
            frame = _of_today(reader.parquet(*files), table)
            if only is not None:
                frame = frame.where(frame["recording"].isin(sorted(only)))
            frames.append(frame)
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole


def _of_today(frame: Any, table: str) -> Any:
    """The frame with the names and words of today; a column under its new name wins."""
    for new, (old, words) in RENAMED.get(table, {}).items():
        cases = " ".join(f"WHEN '{before}' THEN '{after}'" for before, after in words.items())
        renewed = f"COALESCE({new}, CASE {old} {cases} ELSE {old} END)"
        shown = [f"{renewed} AS {new}" if name == new else name for name in SCHEMAS[table].names]
        frame = frame.selectExpr(*shown)
    return frame


def _filtered(frame: Any, condition: Mapping[str, Any]) -> Any:
    for column, value in condition.items():
        if column == "from_ns":
            frame = frame.where(frame["ts"] >= value)
        elif column == "to_ns":
            frame = frame.where(frame["ts"] < value)
        else:
            frame = frame.where(frame[column].isin(list(value)))
    return frame


def _failed(error: Exception) -> Exception:
    if isinstance(error, (LakeError, QueryError)):
        return error
    text = str(error)
    first = re.sub(r"\s+", " ", text.split("\nJVM")[0].split("\n\tat ")[0])[:500]
    if "PATH_NOT_FOUND" in text or "FileNotFoundException" in text:
        return LakeError(
            "Spark cannot find files of the lake",
            causes=[first],
            hint="make the lake accessible to every worker; if it was compacted meanwhile, retry",
        )
    if 'No FileSystem for scheme "s3a"' in text or "S3AFileSystem" in text:
        return LakeError(
            "this Spark cannot read s3://",
            causes=[first],
            hint="add the package org.apache.hadoop:hadoop-aws of its Hadoop version "
            "(spark.jars.packages in spark-defaults.conf)",
        )
    return QueryError(f"Spark rejected the statement: {first}")
