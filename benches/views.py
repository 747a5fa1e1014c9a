"""Queries of every kind, and the SQL with which DuckDB gives the same answer.

Where the tests compare an answer with SQL (`crates/whyslow-analysis/tests/duckdb_oracle`), that SQL is
used. Exceptions are statistics and top lists: the tests need our exact percentiles and ties, while the
plain aggregates here are faster; peers are queried as their users would.
"""

import re
from pathlib import Path

ORACLE = Path(__file__).resolve().parent.parent / "crates/whyslow-analysis/tests/duckdb_oracle"
WHOLE = "greatest(1, getvariable('span_end') - getvariable('span_begin'))"
# Targets in ms, from issue 2. Those for one percent of the time and for a small recording apply to every query.
MARKS = {"stats": 500, "hist": 500, "usage": 500, "heat": 500, "top": 1000, "by path": 1000}
WINDOW_MS = 50
SMALL_MS = 30
MEMORY_MIB = 400


def oracle(file, **words):
    text = (ORACLE / f"{file}.sql").read_text()
    for word, replacement in words.items():
        text = text.replace("{" + word + "}", replacement)
    return text


def stats(table, keys, more="", where="true"):
    return f"""SELECT {keys}, count(*), min(dur), avg(dur), max(dur), stddev(dur), sum(dur),
        quantile_cont(dur, [.5, .9, .99, .999]), arg_max(id, dur), count(*) - count(dur) {more}
        FROM {table} WHERE {where} GROUP BY {keys}"""


def hist(table, keys, where="true"):
    return f"""SELECT {keys}, CAST(floor(log2(dur + 1)) AS BIGINT) AS b, count(*), max(dur)
        FROM {table} WHERE {where} GROUP BY {keys}, b"""


def top(table, keys, columns, where="true"):
    return f"""SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY dur DESC, id) AS place
        FROM {table} WHERE dur IS NOT NULL AND {where}) WHERE place <= 10 ORDER BY {keys}, place"""


def heat(table, where="true"):
    return f"""SELECT CAST(floor(ts / 1000000000) AS BIGINT) AS s, CAST(floor(log2(dur + 1)) AS BIGINT) AS b,
        count(*) FROM {table} WHERE {where} GROUP BY s, b"""


BLOCK_SUMS = ", sum(bytes), quantile_cont(queue_ns, [.5, .99]), sum(queue_ns), quantile_cont(device_ns, [.5, .99]), sum(device_ns), count(error)"
ROW = "id, ts, ts_end, dur, comm, pid, tid, cpu"


def basic(kind, table, keys, columns, more="", where="true"):
    """Statistics, histogram, top list and heat map of a table of intervals."""
    return [
        (f"{kind} stats", "stats", [kind, "stats"],
         stats(table, keys, more, where) + (";\n" + stats(table, "dev_name", more) if kind == "block" else "")),
        (f"{kind} hist", "hist", [kind, "hist"], hist(table, keys if kind != "syscalls" else "1", where)),
        (f"{kind} top", "top", [kind, "top"],
         top(table, keys if kind in ("block", "states", "mem") else "kind" if kind == "irq" else "true", f"{ROW}, {columns}", where)),
        (f"{kind} heat", "heat", [kind, "heat"], heat(table, where)),
    ]


def views():
    """Name, target, command, and SQL if there is any."""
    usage_cpu = dict(width=WHOLE, time="")
    devices = oracle("devices", width=f"{WHOLE}::BIGINT", time="", order="read_bytes + write_bytes DESC, dev")
    by_file = oracle("usage_file", view="io", wanted="true", name="file", time="", ts="", first="object", second="path2")
    by_process = oracle("usage_owner", keys="upid", names="upid", either="coalesce(calls.upid, disk.upid) AS upid",
                        on="calls.upid IS NOT DISTINCT FROM disk.upid", order="upid NULLS FIRST", shown="*",
                        **{"with": ""}, first="")
    every = [
        *basic("block", "block_io", "dev_name, op", "queue_ns, device_ns, dev_name, op, rwbs, sector, bytes",
               BLOCK_SUMS),
        ("block usage", "usage", ["block", "usage"], devices),
        ("block usage 1 (each second)", "usage", ["block", "usage", "REC", "1"],
         oracle("devices", width="1000000000::BIGINT", time="b AS ts_ns,", order="ts_ns, dev")),
        ("block outliers", None, ["block", "outliers"], None),
        ("block stats --by dev", "stats", ["block", "stats", "--by", "dev"], stats("block_io", "dev_name", BLOCK_SUMS)),
        *basic("sched", "thread_state", "reason", "reason, prio, waker_utid, wake_context", where="state = 'runnable'"),
        *basic("states", "thread_state", "state", "state"),
        ("states usage", "usage", ["states", "usage"], oracle("usage_states", width=WHOLE, time="")),
        ("threads list", "usage", ["threads", "list"], oracle("threads")),
        ("threads states", "usage", ["threads", "states"], oracle("usage_states", width=WHOLE, time="")),
        ("threads timeline", "usage", ["threads", "timeline"], oracle("timeline", width=f"(({WHOLE} + 59) // 60)")),
        *basic("cpu", "sched_slice", "upid", "prio, system_ns, end_state"),
        ("cpu usage", "usage", ["cpu", "usage"],
         oracle("usage_cpu", keys="upid", groups="upid", order="upid NULLS FIRST", **usage_cpu)
         + oracle("usage_cpus", **usage_cpu)),
        ("cpu usage --by thread", "usage", ["cpu", "usage", "--by", "thread"],
         oracle("usage_cpu", keys="utid", groups="utid", order="utid NULLS FIRST", **usage_cpu)),
        ("cpu usage --by cpu", "usage", ["cpu", "usage", "--by", "cpu"], oracle("usage_cpus", **usage_cpu)),
        ("cpu usage 1 --by cpu (each second)", "usage", ["cpu", "usage", "REC", "1", "--by", "cpu"], None),
        *basic("irq", "irq", "kind, nr, name", "self_ns, kind, nr, name, raise_ns, ret",
               ", quantile_cont(raise_ns, [.5, .99]), sum(raise_ns), min(raise_ns), avg(raise_ns), max(raise_ns), stddev(raise_ns), count(raise_ns)"),
        ("irq usage", "usage", ["irq", "usage"],
         oracle("usage_irq", keys="upid", time="", time_order="", length=WHOLE, order="upid NULLS FIRST")),
        *basic("syscalls", "syscall", "name", "name, fd, bytes_requested, file_offset, flags, ret, path", ", count(errno)"),
        ("io usage", "usage", ["io", "usage"], by_process + by_file + devices + oracle("interfaces", width=WHOLE)),
        ("io usage --by file", "by path", ["io", "usage", "--by", "file"],
         by_file
         + oracle("sharers", view="io", wanted="true")),
        ("net usage", "usage", ["net", "usage"],
         oracle("usage_net", keys="netif", order="netif NULLS FIRST", first="", seconds="span_s()")),
        ("net usage --by process", "usage", ["net", "usage", "--by", "process"],
         oracle("usage_net_owner", keys="upid", order="upid NULLS FIRST")),
        ("net usage --by peer", "usage", ["net", "usage", "--by", "peer"], oracle("usage_peer")),
        *basic("mem", "reclaim", "kind", "kind, pages, alloc_order, node"),
        ("mem usage", "usage", ["mem", "usage"],
         oracle("usage_mem", keys="upid", order="upid NULLS FIRST", first="", time="", part="", width=WHOLE,
                either="coalesce(pages.upid, stalled.upid) AS upid", on="pages.upid IS NOT DISTINCT FROM stalled.upid")),
        ("use", "usage", ["use"], oracle("use")),
        ("as iostat -dx 1", None, ["as", "iostat", "REC", "-dx", "1"],
         oracle("devices", width="1000000000::BIGINT", time="b AS ts_ns,", order="ts_ns, dev")),
        ("as pidstat -d 1", None, ["as", "pidstat", "REC", "-d", "1"], None),
        ("as lttng-cputop", None, ["as", "lttng-cputop", "REC"], None),
        ("as lttng-schedstats", None, ["as", "lttng-schedstats", "REC"], None),
    ]
    return every


def windows():
    """Queries in a window of one percent of the time."""
    return [
        ("block stats", ["block", "stats"]), ("block usage", ["block", "usage"]), ("block outliers", ["block", "outliers"]),
        ("sched stats", ["sched", "stats"]), ("states usage", ["states", "usage"]), ("threads list", ["threads", "list"]),
        ("threads timeline", ["threads", "timeline"]), ("cpu usage", ["cpu", "usage"]),
        ("cpu usage --by cpu", ["cpu", "usage", "--by", "cpu"]), ("irq stats", ["irq", "stats"]),
        ("irq top", ["irq", "top"]), ("syscalls stats", ["syscalls", "stats"]), ("io usage", ["io", "usage"]),
        ("net usage --by peer", ["net", "usage", "--by", "peer"]), ("mem usage", ["mem", "usage"]), ("use", ["use"]),
    ]


def script(sql, manifest, rec):
    """The SQL with only the views and macros that it needs, since creating a view reads the files."""
    texts = re.split(r";\s*(?:\n|$)", re.sub(r"^--.*$", "", (ORACLE / "prelude.sql").read_text(), flags=re.M))
    macros = [text for text in texts if "CREATE MACRO" in text]
    made = {re.search(r"CREATE VIEW (\w+)", text).group(1): text for text in texts if "CREATE VIEW" in text}
    wanted, text = [], sql
    for name in reversed(list(made)):
        if re.search(rf"\b(FROM|JOIN) {name}\b|, {name}\b", text):
            wanted.insert(0, made[name])
            text += made[name]
    tables = []
    for name, table in manifest["tables"].items():
        files = [f"'{rec / file}'" for file in [*table["files"], *table.get("long_files", [])]]
        if files and re.search(rf"\b{name}\b", text):
            tables.append(f"CREATE VIEW {name} AS FROM read_parquet([{', '.join(files)}])")
    begin, end = manifest["begin_ns"], manifest["end_ns"]
    variables = [
        "SET VARIABLE win_begin = NULL::BIGINT", "SET VARIABLE win_end = NULL::BIGINT",
        f"SET VARIABLE span_begin = {begin}", f"SET VARIABLE span_end = {end}", f"SET VARIABLE rec_end = {end}",
    ]
    return ";\n".join([*variables, *tables, *macros, *wanted, sql]) + ";\n"
