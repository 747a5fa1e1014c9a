#!/usr/bin/env python3
"""Benchmarks against peers, measured in one run: CPU seconds, medians of interleaved runs.

    ./dev bench              all parts
    ./dev bench decode       only some parts: decode, import, scale, queries, views, explain, tiles,
                             ui, cost, load, requests, profiles
    ./dev bench --write      also write the tables of the measured parts to docs/performance.md
    ./dev bench builds OLD NEW    compare two programs: import, queries, recorder
    ./dev bench views --only 'block|irq'    only queries with matching names

The benchmarks do not pass or fail; they print measurements.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cost
import load
import pages
import profiles
import requests
import findings
import tiles
import views

RUNS = 5
# Minimum total time of a comparison, limited to 8 times RUNS.
SECONDS_MIN = 5
ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
WHYSLOW = TARGET / "whyslow"
XTASK = TARGET / "xtask"
LARGE_EVENTS = [1_000_000, 10_000_000, 50_000_000]
SYNTHETIC_ROWS = 10_000_000
# Number of single calls that are explained one after another.
CALLS_EXPLAINED = 5


MACHINE = (f"{os.cpu_count()} CPUs, Linux {os.uname().release.split('-')[0]}, {time.strftime('%Y-%m-%d')}; "
           f"medians of {RUNS} interleaved runs, up to {8 * RUNS} for short ones.")


class Run:
    """The cost of a process."""

    def __init__(self, command, shell_env=None, seconds_max=None):
        env = dict(os.environ, TZ="UTC", **(shell_env or {}))
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
        )
        timer = threading.Timer(seconds_max, process.kill) if seconds_max else None
        if timer:
            timer.start()
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.perf_counter() - begin
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss_mib = usage.ru_maxrss / 1024
        if timer:
            timer.cancel()
        self.ok = process.returncode == 0
        if not self.ok:
            sys.stderr.write(f"failed ({process.returncode}): {command}\n{errors.decode(errors='replace')[-400:]}\n")


def interleaved(contestants, runs=RUNS, before=None, seconds_min=SECONDS_MIN):
    """Median cost of each contestant; runs are interleaved so that background load affects all of them.

    Short commands run more often, because single runs vary.
    """
    results = {name: [] for name in contestants}
    begin = time.perf_counter()
    rounds = 0
    while rounds < runs or (rounds < 8 * runs and time.perf_counter() - begin < seconds_min):
        rounds += 1
        for name, commands in contestants.items():
            total = None
            for command in commands:
                if before:
                    before()
                run = Run(command)
                if total is None:
                    total = run
                else:
                    total.cpu += run.cpu
                    total.wall += run.wall
                    total.rss_mib = max(total.rss_mib, run.rss_mib)
                    total.ok &= run.ok
            results[name].append(total)
    medians = {}
    for name, all_runs in results.items():
        medians[name] = {
            "cpu": statistics.median(run.cpu for run in all_runs),
            "wall": statistics.median(run.wall for run in all_runs),
            "rss": max(run.rss_mib for run in all_runs),
            "ok": all(run.ok for run in all_runs),
        }
    return medians


def table(title, header, rows):
    lines = [f"### {title}", "", MACHINE, "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    text = "\n".join(lines) + "\n"
    print(text, flush=True)
    return text


def find_traces(work):
    """Small real traces: the bundled one, and those in WHYSLOW_DATA."""
    archives = {"web-incident": ROOT / "fixtures/web-incident/trace.tar.zst"}
    data = os.environ.get("WHYSLOW_DATA")
    if data:
        for path in sorted(Path(data, "ctf").glob("*.tar.xz")):
            name = path.name.removesuffix(".tar.xz")
            if name not in ("reader-cases", "two-hosts-scp-3.6"):
                archives[name] = path
    else:
        print("skipped: traces in WHYSLOW_DATA, which is not set; measuring the bundled trace only", file=sys.stderr)
    traces = {}
    for name, path in archives.items():
        folder = work / "traces" / name
        folder.mkdir(parents=True)
        subprocess.run(["tar", "xf", path, "-C", folder], check=True)
        # lttng-analyses detects the tracer version only in a folder of this name.
        kernel = work / "traces" / f"{name}.renamed" / "kernel"
        kernel.parent.mkdir()
        traces[name] = sorted(folder.rglob("metadata"))[0].parent.rename(kernel)
    return traces


def events_in(trace):
    out = subprocess.run([XTASK, "decode", trace], capture_output=True, text=True, check=True)
    return int(out.stdout.split()[0])


def large_trace(work, source, events):
    folder = work / f"large-{events}"
    if not folder.exists():
        subprocess.run([XTASK, "repeat", source, folder, str(events)], check=True, stdout=subprocess.DEVNULL)
    return folder


def bench_decode(work, traces):
    rows = []
    big = large_trace(work, traces["web-incident"], LARGE_EVENTS[1])
    for name, trace in [*traces.items(), ("web-incident repeated", big)]:
        events = events_in(trace)
        peers = {"ours": [[XTASK, "decode", trace]], "babeltrace2": [["babeltrace2", "-o", "dummy", trace]]}
        result = interleaved(peers)
        ours, peer = result["ours"], result["babeltrace2"]
        note = "" if peer["ok"] else " (fails)"
        rows.append([
            name, f"{events:,}", f"{ours['cpu']:.3f}", f"{peer['cpu']:.3f}{note}",
            f"{peer['cpu'] / max(ours['cpu'], 1e-9):.1f}×", f"{events / max(ours['cpu'], 1e-9) / 1e6:.1f}",
        ])
    return table(
        "Decode only: every field of every event (CPU s)",
        ["trace", "events", "whyslow", "babeltrace2 -o dummy", "ratio", "our M events/s"],
        rows,
    )


LTTNG_RUNS = 2
LTTNG_IO = ["lttng-iousagetop", "lttng-iolatencystats", "lttng-iolatencytop", "lttng-iolatencyfreq"]


def bench_import(work, traces):
    rows = []
    for name, trace in traces.items():
        out = work / "import.wsl"
        result = interleaved({
            "ours": [[WHYSLOW, "import", trace, "-o", out, "--force", "--no-progress"]],
            "babeltrace2": [["babeltrace2", "-o", "dummy", trace]],
        })
        if shutil.which(LTTNG_IO[0]):
            # Seconds to a minute each: medians of fewer runs.
            tools = {tool: [[tool, "--no-progress", "--skip-validation", trace]] for tool in LTTNG_IO}
            of_tools = interleaved(tools, runs=LTTNG_RUNS)
            result["one"] = of_tools[LTTNG_IO[0]]
            result["four"] = {
                "cpu": sum(tool["cpu"] for tool in of_tools.values()),
                "ok": all(tool["ok"] for tool in of_tools.values()),
            }
        ours = result["ours"]["cpu"]
        row = [name, f"{ours:.3f}", f"{result['ours']['rss']:.0f}"]
        for peer in ("babeltrace2", "one", "four"):
            got = result.get(peer)
            row.append("–" if not got else f"{got['cpu']:.2f} ({got['cpu'] / ours:.1f}×)" if got["ok"] else "fails")
        rows.append(row)
    return table(
        f"Full import, Parquet written (CPU s; ratio to ours; lttng-analyses: {LTTNG_RUNS} runs)",
        ["trace", "whyslow import", "MiB", "babeltrace2 -o dummy", "lttng-iousagetop", "four I/O commands of lttng-analyses"],
        rows,
    )


def bench_scale(work, traces):
    rows = []
    for events in LARGE_EVENTS:
        trace = large_trace(work, traces["web-incident"], events)
        out = work / "scale.wsl"
        contestants = {
            "ours": [[WHYSLOW, "import", trace, "-o", out, "--force", "--no-progress"]],
            "babeltrace2": [["babeltrace2", "-o", "dummy", trace]],
        }
        result = interleaved(contestants, runs=1 if events > 10_000_000 else 3)
        ours, peer = result["ours"], result["babeltrace2"]
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        rows.append([
            f"{events:,}", f"{ours['cpu']:.2f}", f"{ours['wall']:.2f}", f"{events / ours['cpu'] / 1e6:.2f}",
            f"{ours['rss']:.0f}", f"{size / events:.1f}", f"{peer['cpu']:.2f}", f"{peer['cpu'] / ours['cpu']:.2f}×",
        ])
        shutil.rmtree(out, ignore_errors=True)
        if events == LARGE_EVENTS[-1]:
            shutil.rmtree(trace, ignore_errors=True)
    return table(
        "Import against size (web-incident repeated with shifted clocks)",
        ["events", "CPU s", "wall s", "M events/s", "peak MiB", "bytes/event on disk", "babeltrace2 -o dummy CPU s", "ratio"],
        rows,
    )


OP = "op IN ('open','close','read','write','read_write','sync','metadata','submit')"
QUERIES = {
    "stats": (["io", "stats"], f"SELECT op, count(*), min(dur), avg(dur), max(dur), stddev(dur), sum(dur), quantile_cont(dur,[.5,.9,.99]) FROM t WHERE {OP} GROUP BY op"),
    "hist": (["io", "hist"], f"SELECT op, CAST(floor(log2(dur + 1)) AS BIGINT) AS b, count(*), max(dur) FROM t WHERE {OP} GROUP BY op, b"),
    "usage": (["io", "usage"], f"SELECT upid, fd_class, op, sum(bytes), count(*) FROM t WHERE {OP} GROUP BY upid, fd_class, op", f"""
        CREATE TEMP TABLE best AS SELECT path, sum(bytes) FILTER (op IN ('read', 'read_write')) AS r, sum(bytes) FILTER (op = 'write') AS w, count(*) AS n
        FROM t WHERE {OP} GROUP BY path ORDER BY sum(bytes) DESC LIMIT 10; FROM best""", f"""
        SELECT path, upid, fd, count(*) FROM t SEMI JOIN best USING (path) WHERE {OP} GROUP BY path, upid, fd"""),
    "heat": (["io", "heat"], f"SELECT CAST(floor(ts / 1000000000) AS BIGINT) AS s, CAST(floor(log2(dur + 1)) AS BIGINT) AS b, count(*) FROM t WHERE {OP} GROUP BY s, b"),
    "top": (["io", "top"], "SELECT * FROM (SELECT id, op, ts, dur, comm, tid, path, bytes, row_number() OVER (PARTITION BY op ORDER BY dur DESC, id) AS r FROM t WHERE " + OP + ") WHERE r <= 10"),
    "by path": (["io", "stats", "--by", "file"], f"""SELECT path, count(*), sum(bytes), min(dur), avg(dur), max(dur), stddev(dur), sum(dur),
        quantile_cont(dur,[.5,.9,.99,.999]), count(errno), arg_max(comm, dur), arg_max(tid, dur), arg_max(id, dur) FROM t WHERE {OP} GROUP BY path"""),
}


def bench_queries(work, traces):
    rec = work / "synthetic.wsl"
    subprocess.run([XTASK, "synthetic", rec, str(SYNTHETIC_ROWS)], check=True, stdout=subprocess.DEVNULL)
    small = work / "small.wsl"
    subprocess.run([WHYSLOW, "import", traces["web-incident"], "-o", small, "--no-progress"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    manifest = json.loads((rec / "manifest.json").read_text())
    files = ",".join(f"'{rec / name}'" for name in manifest["tables"]["syscall"]["files"])
    rows = []
    view = f"CREATE TEMP VIEW t AS SELECT * FROM read_parquet([{files}])"
    for name, (words, *sql) in QUERIES.items():
        # Both produce JSON, as a program would request it.
        query = "; ".join([view, *sql])
        ours = [WHYSLOW, *words, rec, "--json"]
        result = interleaved({"ours": [ours], "duckdb": [["duckdb", "-json", "-c", query]], "small": [[WHYSLOW, *words, small]]})
        a, b, c = result["ours"], result["duckdb"], result["small"]
        rows.append([
            name, f"{a['wall'] * 1000:.0f}", f"{b['wall'] * 1000:.0f}", f"{a['cpu'] * 1000:.0f}", f"{b['cpu'] * 1000:.0f}",
            f"{b['wall'] / a['wall']:.2f}×", f"{c['wall'] * 1000:.1f}",
        ])
    begin, end = manifest["begin_ns"], manifest["end_ns"]
    middle = (begin + end) // 2
    for label, length in (("stats, 1 s window", 10**9), ("stats, 10 ms window", 10**7)):
        query = (f"WITH t AS (SELECT * FROM read_parquet([{files}]) WHERE ts < {middle + length} AND ts_end > {middle}) "
                 + QUERIES["stats"][1])
        ours = [WHYSLOW, "io", "stats", rec, "--json", "-w", f"{middle}..{middle + length}"]
        result = interleaved({"ours": [ours], "duckdb": [["duckdb", "-json", "-c", query]]})
        a, b = result["ours"], result["duckdb"]
        rows.append([label, f"{a['wall'] * 1000:.0f}", f"{b['wall'] * 1000:.0f}", f"{a['cpu'] * 1000:.0f}",
                     f"{b['cpu'] * 1000:.0f}", f"{b['wall'] / a['wall']:.2f}×", "–"])
    return table(
        f"Queries on {SYNTHETIC_ROWS:,} system calls, warm, process start included (ms)",
        ["query", "whyslow wall", "DuckDB wall", "whyslow CPU", "DuckDB CPU", "ratio", "small recording, wall"],
        rows,
    )


# Rows of each kind, to show whether time grows in proportion.
MACHINE_ROWS = [1_000_000, 10_000_000]
# Four dozen queries: fewer runs of the short ones than elsewhere.
VIEWS_SECONDS_MIN = 1
# A peer whose first run takes longer is run only once; at the second limit it is stopped.
PEER_SECONDS_MAX = 4
PEER_SECONDS_GIVE_UP = 30
# A query that takes longer misses its target anyway: two runs.
OURS_SECONDS_MAX = 4


def bench_views(work, traces):
    small = work / "incident.wsl"
    subprocess.run([WHYSLOW, "import", traces["web-incident"], "-o", small, "--no-progress"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (less, _), (large, content) = (machine(work, rows) for rows in MACHINE_ROWS)
    together, content_together = machine(work, MACHINE_ROWS[-1], "together")
    manifest = json.loads((large / "manifest.json").read_text())

    def command(words, rec):
        at = [] if "REC" in words else [rec]
        form = [] if words[0] == "as" else ["--json"]
        return [WHYSLOW, *[rec if word == "REC" else word for word in words], *at, *form]

    rows = []
    for name, kind, words, sql in views.views():
        if not ONLY.search(name):
            continue
        contestants = {"large": [command(words, large)], "less": [command(words, less)], "together": [command(words, together)],
                       "small": [command(words, small)]}
        peer = {"wall": None}
        if sql:
            query = work / "query.sql"
            query.write_text(views.script(sql, manifest, large))
            duckdb = ["duckdb", "-json", "-c", f".read {query}"]
            once = Run(duckdb, seconds_max=PEER_SECONDS_GIVE_UP)
            if once.wall > PEER_SECONDS_MAX or not once.ok:
                peer = {"wall": once.wall, "cpu": once.cpu, "rss": once.rss_mib, "ok": once.ok, "once": True}
            else:
                contestants["duckdb"] = [duckdb]
        is_long = Run(command(words, large)).wall > OURS_SECONDS_MAX
        result = interleaved(contestants, runs=2 if is_long else RUNS, seconds_min=VIEWS_SECONDS_MIN)
        peer = result.get("duckdb", peer)
        ours = result["large"]
        problems = missed_by(kind, ours, peer, result["small"])
        mark = views.MARKS.get(kind)
        failed = "" if all(one["ok"] for one in result.values()) else " (fails)"
        failed += " (2 runs)" if is_long else ""
        rows.append([
            name + failed, f"{ours['wall'] * 1000:.0f}", f"{ours['cpu'] * 1000:.0f}", f"{ours['rss']:.0f}",
            f"{ours['wall'] / max(result['less']['wall'], 1e-9):.1f}×", *of_peer(peer, ours),
            f"{result['small']['wall'] * 1000:.0f}", mark or "–", "; ".join(problems) or "–",
            f"{result['together']['wall'] * 1000:.0f}", mark and late(result["together"], mark) or "–",
        ])
        print(" | ".join(str(cell) for cell in rows[-1]), file=sys.stderr, flush=True)
    texts = [table(
        f"Queries of every kind on {MACHINE_ROWS[-1]:,} rows per table, warm, process start included (ms)",
        ["query", "wall", "CPU", "MiB", "÷ 1 M rows", "DuckDB wall", "DuckDB CPU", "DuckDB MiB", "ratio of wall", "incident, wall",
         "target", "missed", "all together, wall", "missed"],
        rows,
    ), f"Each table: {content}.\nAll together: {content_together}.\n"]
    begin, end = manifest["begin_ns"], manifest["end_ns"]
    length, middle = (end - begin) // 100, (begin + end) // 2
    window_rows = []
    for name, words in views.windows():
        if not ONLY.search(name):
            continue
        result = interleaved({"ours": [[*command(words, large), "-w", f"{middle}..{middle + length}"]]}, seconds_min=0.5)["ours"]
        problem = late(result, views.WINDOW_MS) or "–"
        window_rows.append([name, f"{result['wall'] * 1000:.0f}", f"{result['cpu'] * 1000:.0f}", f"{result['rss']:.0f}", problem])
    texts.append(table("The same queries in a window of 1 % of the time (ms)", ["query", "wall", "CPU", "MiB", "missed"], window_rows))
    return "\n".join(texts)


def bench_explain(work, _):
    """Wall time of a query; for single calls the mean over several, spread over the recording."""
    rows, before = [], {}
    for size in findings.SIZES:
        recording, _ = machine(work, size, "together")
        query = lambda words: subprocess.run([WHYSLOW, *words], check=True, stdout=subprocess.PIPE).stdout  # noqa: E731
        queries = findings.queries(recording, findings.calls(query, recording, CALLS_EXPLAINED))
        contestants = {name: [[WHYSLOW, *words] for words in all_words] for name, all_words in queries.items()}
        for name, result in interleaved(contestants).items():
            wall, cells = findings.row(name, size, result, len(queries[name]), before.get(name))
            before[name] = wall
            rows.append(cells)
    return table(
        "Explanations, warm, process start included (ms)",
        ["rows of all tables", "query", "wall", "CPU", "MiB", "÷ a tenth of the rows", "target", "missed"],
        rows,
    )


def bench_tiles(work, _):
    """Chart tiles, built and read by a separate program, one process per size."""
    subprocess.run(tiles.BUILD, cwd=ROOT, check=True)
    rows, notes = [], []
    for size in tiles.SIZES:
        if not tiles.fits(size, work):
            notes.append(f"skipped: {size:,} rows: not enough disk space")
            continue
        recording, _ = machine(work, size, "together")
        measured = tiles.measure(TARGET / "examples/bench", recording, work / f"tiles-{size}")
        rows.append(tiles.row(size, measured))
    title = "Tiles of all kinds of rows: built once, then read as 40 lanes of up to 1024 cells, worst of all scales"
    return table(title, tiles.HEADER, rows) + printed(notes)


def bench_ui(work, _):
    """Pages in a browser: first chart, frame times while zooming, tiles over HTTP."""
    rows, notes = [], []
    for size in pages.SIZES:
        if not pages.fits(size, work):
            notes.append(f"skipped: {size:,} rows: not enough disk space")
            continue
        recording, _ = machine(work, size, "together")
        rows.append(pages.row(pages.measure(ROOT, WHYSLOW, recording)))
    size = pages.bundle_kb(ROOT)
    notes.append(f"Pages, scripts and styles are {size:.0f} kB compressed (target {pages.BUNDLE_KB} kB)")
    title = "Pages in Chromium without a GPU, 1920 × 1080, server and browser on the same CPUs"
    return table(title, pages.HEADER, rows) + printed(notes)


def machine(work, rows, *spread):
    """A recording with `rows` rows of each kind, or of all kinds together, and its description."""
    rec = Path(os.environ.get("WHYSLOW_BENCH_MACHINES", work)) / ("-".join(["machine", str(rows), *spread]) + ".wsl")
    done = rec.with_suffix(".txt")
    if not done.exists():
        out = subprocess.run([XTASK, "machine", rec, str(rows), *spread], check=True, capture_output=True, text=True)
        done.write_text(out.stdout)
    return rec, done.read_text().strip()


def late(one, mark):
    """The target that a run missed, with a query mark if its CPU time, spread over the CPUs, would
    have met it: then the machine was busy."""
    if one["wall"] * 1000 <= mark:
        return ""
    return f"{mark} ms" if one["cpu"] * 1000 / os.cpu_count() > mark else f"{mark} ms?"


def missed_by(kind, ours, peer, small):
    """Targets of issue 2 that a query misses."""
    problems = []
    mark = views.MARKS.get(kind)
    if mark and late(ours, mark):
        problems.append(late(ours, mark))
    if peer["wall"] and peer.get("ok") and ours["wall"] > peer["wall"]:
        problems.append("DuckDB")
    if ours["rss"] > views.MEMORY_MIB:
        problems.append(f"{views.MEMORY_MIB} MiB")
    if late(small, views.SMALL_MS):
        problems.append(late(small, views.SMALL_MS) + " small")
    return problems


def of_peer(peer, ours):
    if not peer["wall"]:
        return ["–"] * 4
    if not peer["ok"]:
        given_up = peer["wall"] > PEER_SECONDS_GIVE_UP
        return [f"> {PEER_SECONDS_GIVE_UP} s" if given_up else "fails"] + ["–"] * 3
    note = " (one run)" if peer.get("once") else ""
    return [f"{peer['wall'] * 1000:.0f}{note}", f"{peer['cpu'] * 1000:.0f}", f"{peer['rss']:.0f}",
            f"{peer['wall'] / ours['wall']:.2f}×"]


def report_progress(text):
    print(text, file=sys.stderr, flush=True)


def bench_cost(work, _):
    rows, own, notes = cost.measure(WHYSLOW, work, RUNS, report_progress)
    text = table(
        "CPU time per recorded system call (ns; alternating 1-byte reads of /dev/zero and writes to /dev/null)",
        ["recorder", "median", "minimum", "overhead", "ratio"],
        rows,
    )
    texts = [text + printed(notes)]
    if own:
        texts.append(table("CPU time of the recorder itself, on other CPUs if available",
                           ["recorder", "records", "CPU ns per record", "bytes per record", "lost"], own))
        rows = cost.imports(WHYSLOW, work, report_progress)
        texts.append(table(f"From spool to recording (medians of {cost.IMPORTS}; target {cost.MARK_IMPORT / 1e6:.0f} M events per CPU second)",
                           ["recorded", "events", "CPU s", "M events per CPU second", "target"], rows))
    return "\n".join(texts)


def bench_load(work, _):
    tables, notes = load.measure(WHYSLOW, work, RUNS, report_progress)
    texts = [table(title, header, rows) for title, header, rows in tables]
    texts[-1:] = [texts[-1] + "\n" + printed(notes)] if texts else []
    return "\n".join(texts)


def bench_requests(work, _):
    tables, notes = requests.measure(WHYSLOW, work, RUNS, report_progress)
    texts = [table(title, header, rows) for title, header, rows in tables]
    return "\n".join(texts) + "\n" + printed(notes)


def bench_profiles(work, _):
    """Large profiles, read by us and by other readers."""
    subprocess.run(profiles.BUILD, cwd=ROOT, check=True)
    notes = profiles.Notes()
    texts = []
    large = profiles.attempt(notes, "JFR", lambda: profiles.make_jfr(work))
    if large:
        events, samples, size = large
        contestants = profiles.jfr_contestants(work, TARGET / "examples/profile", WHYSLOW, notes)
        result = interleaved(contestants)
        notes += profiles.missed(result)
        texts.append(table(
            f"A JFR file of {size / 1e6:.0f} MB: {samples:,} samples of {events:,} events in {profiles.JFR_CHUNKS} chunks",
            ["reader", "CPU s", "wall s", "MiB", "CPU to ours (read, sorted)"], profiles.jfr_rows(result)) + printed(notes))
        of_answers = interleaved(profiles.answers(work, WHYSLOW))
        rows = [[name, f"{got['wall'] * 1000:.0f}", f"{got['cpu'] * 1000:.0f}", f"{got['rss']:.0f}", late(got, profiles.MARK_MS) or "–"]
                for name, got in of_answers.items()]
        texts.append(table("Queries on the recording of that file (ms)", ["query", "wall", "CPU", "MiB", "missed"], rows))
    notes = profiles.Notes()
    rows = []
    for megabytes in profiles.PERF_MB:
        samples = profiles.attempt(notes, f"perf.data of {megabytes} MB", lambda: profiles.make_perf(work, megabytes))
        if samples:
            result = interleaved(profiles.perf_contestants(work, WHYSLOW, megabytes), runs=3 if megabytes < 1000 else 1)
            rows += profiles.perf_rows(megabytes, samples, result)
        (work / f"large-{megabytes}.data").unlink(missing_ok=True)
    if rows:
        texts.append(table("perf.data against size (CPU samples with stacks; 3 runs, one for a gigabyte)", profiles.PERF_HEADER, rows) + printed(notes))
    return "\n".join(texts) or printed(notes)


def printed(notes):
    """Prints notes and returns them as text below a table."""
    text = "".join(f"{note}.\n" for note in notes)
    print(text, flush=True)
    return text


ONLY = re.compile("")
PARTS = {"decode": bench_decode, "import": bench_import, "scale": bench_scale, "queries": bench_queries, "views": bench_views,
         "explain": bench_explain, "tiles": bench_tiles, "ui": bench_ui, "cost": bench_cost, "load": bench_load, "requests": bench_requests, "profiles": bench_profiles}
BEGIN = "<!-- measured by `./dev bench --write` from here to the end -->\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX", help="only queries of the part views that match REGEX")
    arguments = parser.parse_args()
    global ONLY
    ONLY = re.compile(arguments.only)
    texts = []
    with tempfile.TemporaryDirectory(prefix="whyslow-bench-") as folder:
        work = Path(folder)
        # Parts that do not need traces.
        traces = {} if set(arguments.parts) and set(arguments.parts) <= {"cost", "explain", "load", "profiles", "requests", "tiles", "ui"} else find_traces(work)
        for name in arguments.parts or PARTS:
            texts.append(PARTS[name](work, traces))
    if arguments.write:
        page = ROOT / "docs/performance.md"
        head, _, before = page.read_text().partition(BEGIN)
        sections = {section.split("\n")[0]: section for section in sections_of(before)}
        sections |= {section.split("\n")[0]: section for section in sections_of("\n".join(texts))}
        page.write_text(head + BEGIN + "\n" + "\n\n".join(sections.values()) + "\n")


def sections_of(text):
    """Tables with the notes below them; parts that are not measured stay unchanged."""
    return ["### " + section.strip() for section in text.split("### ")[1:]]


if __name__ == "__main__":
    main()
