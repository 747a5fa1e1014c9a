"""The tables of a recording, for baselines and scores, read without any whyslow code."""

import pathlib

import duckdb


class Recording:
    def __init__(self, path, pid):
        self.path = pathlib.Path(path)
        self.db = duckdb.connect()
        self.names = set()
        self.rows = {}
        for file in sorted(self.path.rglob("*.parquet")):
            if file.stem in self.names:
                continue
            parts = sorted(self.path.rglob(f"{file.stem}.parquet"))
            late = sorted(self.path.rglob(f"{file.stem}_long.parquet"))
            words = ", ".join(f"'{part}'" for part in parts + late)
            self.db.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM read_parquet([{words}])")
            self.names.add(file.stem)
        for name in ("thread_state", "syscall", "block_io", "wakeup", "irq"):
            self.rows[name] = self.one(f"SELECT count(*) FROM {name}") if name in self.names else 0
        self.maker = pid
        self.family = self.descendants(pid)
        # Kernel threads and the recorder belong to the run: naming them counts.
        self.tracers = set()
        if "process" in self.names:
            self.tracers = {row[0] for row in self.all("SELECT pid FROM process WHERE is_tracer")}
        self.known = self.family | self.descendants(2) | self.tracers

    def all(self, sql, *words):
        return self.db.execute(sql, words).fetchall()

    def one(self, sql, *words):
        row = self.db.execute(sql, words).fetchone()
        return row[0] if row else None

    def has(self, *names):
        return all(
            name in self.names and self.one(f"SELECT count(*) FROM {name}") for name in names
        )

    def strangers(self, op):
        """Share of an operation in which processes outside of the run were on CPU."""
        if not self.has("sched_slice"):
            return 0.0
        rows = self.all(
            "SELECT pid, sum(least(coalesce(ts_end, $2), $2) - greatest(ts, $1)) FROM sched_slice"
            " WHERE ts < $2 AND coalesce(ts_end, $2) > $1 AND pid IS NOT NULL GROUP BY pid",
            op["begin_ns"],
            op["end_ns"],
        )
        others = sum(ns for pid, ns in rows if pid not in self.known)
        return others / max(op["end_ns"] - op["begin_ns"], 1)

    def descendants(self, pid):
        """Ids of a process and its descendants."""
        if "process" not in self.names:
            return {pid}
        children = {}
        for child, parent in self.all("SELECT pid, ppid FROM process WHERE ppid IS NOT NULL"):
            children.setdefault(parent, set()).add(child)
        found, new = {pid}, [pid]
        while new:
            more = children.get(new.pop(), set()) - found
            found |= more
            new += more
        return found
