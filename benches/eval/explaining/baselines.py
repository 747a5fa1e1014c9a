"""Simpler methods on the same tables, so that only the method differs.

syscalls    the call of another thread that overlaps the window most (iolatencytop)
block       the issuer of the slowest request that ends in the window (biosnoop)
offwake     the thread that woke the victim after most of its off-CPU time (offwaketime)
graph       the other thread with most of the critical path of the execution graph: it follows wakers
            and ends at devices and timers (Trace Compass)
flatten     the same, but interrupts have no waker and kernel threads are followed (Perfetto)
"""

DEPTH_MAX = 24


def answers(tables, op):
    return {
        "syscalls": syscalls(tables, op) if tables.has("syscall") else None,
        "block": block(tables, op) if tables.has("block_io") else None,
        "offwake": offwake(tables, op) if tables.has("thread_state") else None,
        "graph": path(tables, op, Graph) if tables.has("thread_state", "wakeup") else None,
        "flatten": path(tables, op, Flatten) if tables.has("thread_state", "wakeup") else None,
    }


def syscalls(tables, op):
    """Excludes calls that wait for work, which would always win: only I/O calls remain, as in tools
    that list slow I/O calls."""
    row = tables.db.execute(
        """
        SELECT pid, tid, comm, least(ts_end, $end) - greatest(ts, $begin) AS ns FROM syscall
        WHERE ts < $end AND ts_end > $begin AND tid <> $tid
          AND op NOT IN ('sleep', 'wait', 'lock', 'poll', 'other', 'process')
        ORDER BY ns DESC, ts_end - ts DESC, id LIMIT 1
        """,
        {"begin": op["begin_ns"], "end": op["end_ns"], "tid": op["tid"]},
    ).fetchone()
    return named(row)


def block(tables, op):
    row = tables.db.execute(
        """
        SELECT i.pid, i.tid, i.comm, b.dur AS ns FROM block_io b
        LEFT JOIN thread i ON i.utid = b.issuer_utid
        WHERE b.ts_end > $begin AND b.ts_end <= $end
        ORDER BY b.dur DESC, b.id LIMIT 1
        """,
        {"begin": op["begin_ns"], "end": op["end_ns"]},
    ).fetchone()
    return named(row)


def offwake(tables, op):
    """Names the interrupted bystander, as the tool does."""
    row = tables.db.execute(
        """
        SELECT t.pid, t.tid, t.comm,
               sum(least(s.ts_end, $end) - greatest(s.ts, $begin)) AS ns
        FROM thread_state s JOIN wakeup w ON w.id = s.wakeup_id
        LEFT JOIN thread t ON t.utid = w.waker_utid
        WHERE s.tid = $tid AND s.ts < $end AND s.ts_end > $begin
          AND s.state IN ('sleeping', 'uninterruptible')
        GROUP BY ALL ORDER BY ns DESC, t.tid LIMIT 1
        """,
        {"begin": op["begin_ns"], "end": op["end_ns"], "tid": op["tid"]},
    ).fetchone()
    return named(row)


def named(row):
    if row is None or row[1] is None:
        return None
    return {"pid": row[0], "tid": row[1], "comm": row[2], "ms": round(row[3] / 1e6, 3)}


class Walk:
    """States of the visited threads, and their sums: utid → ns."""

    def __init__(self, tables, op):
        self.tables = tables
        self.states = {}
        self.sums = {}
        self.begin, self.end = op["begin_ns"], op["end_ns"]

    def of(self, utid):
        if utid not in self.states:
            self.states[utid] = self.tables.all(
                "SELECT s.ts, coalesce(s.ts_end, ?), s.state, s.wakeup_id, w.ts, w.waker_utid, w.context"
                " FROM thread_state s LEFT JOIN wakeup w ON w.id = s.wakeup_id"
                " WHERE s.utid = ? AND s.ts < ? AND coalesce(s.ts_end, ?) > ? ORDER BY s.ts",
                self.end,
                utid,
                self.end,
                self.end,
                self.begin,
            )
        return self.states[utid]

    def add(self, key, ns):
        self.sums[key] = self.sums.get(key, 0) + ns

    def walk(self, utid, begin, end, depth=0):
        for ts, ts_end, state, _, _, waker, context in self.of(utid):
            low, high = max(ts, begin), min(ts_end, end)
            if low >= high:
                continue
            if state not in ("sleeping", "uninterruptible", "idle"):
                self.add(utid, high - low)
                continue
            target = self.follow(context, waker)
            if target is None or target == utid or depth >= DEPTH_MAX:
                self.add(self.end_of_path(context, utid), high - low)
            else:
                self.walk(target, low, high, depth + 1)


class Graph(Walk):
    """A wakeup in interrupt context ends the path at the interrupt's kind."""

    def follow(self, context, waker):
        return waker if context == "task" else None

    def end_of_path(self, context, utid):
        return f"<{context}>" if context and context != "task" else utid


class Flatten(Walk):
    """A wakeup in interrupt context has no waker: the time counts for the sleeper."""

    def follow(self, context, waker):
        return waker if context == "task" else None

    def end_of_path(self, context, utid):
        return utid


def path(tables, op, kind):
    utid = tables.one(
        "SELECT utid FROM thread_state WHERE tid = ? AND ts < ? AND coalesce(ts_end, ?) > ? LIMIT 1",
        op["tid"],
        op["end_ns"],
        op["end_ns"],
        op["begin_ns"],
    )
    if utid is None:
        return None
    walk = kind(tables, op)
    walk.walk(utid, op["begin_ns"], op["end_ns"])
    others = {key: ns for key, ns in walk.sums.items() if key != utid}
    if not others:
        return None
    top = max(others, key=lambda key: (others[key], str(key)))
    # Less than a tenth of the window is no verdict.
    if others[top] < 0.1 * (op["end_ns"] - op["begin_ns"]):
        return None
    ms = round(others[top] / 1e6, 3)
    if isinstance(top, str):
        # The path ends at an interrupt, not at a thread.
        return None
    row = tables.all("SELECT pid, tid, comm FROM thread WHERE utid = ?", top)[0]
    return {"pid": row[0], "tid": row[1], "comm": row[2], "ms": ms}
