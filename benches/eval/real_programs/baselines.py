"""What tcpretrans shows, from the same tables as the other baselines."""

BASELINES = ["syscalls", "block", "offwake", "retransmits", "graph", "flatten"]
TOOLS = {
    "syscalls": "iolatencytop",
    "block": "biosnoop",
    "offwake": "offwaketime",
    "retransmits": "tcpretrans",
    "graph": "critical path, Trace Compass",
    "flatten": "critical path, Perfetto",
}


def retransmits(tables, op):
    """The peer of the connection with most retransmitted segments that overlaps the operation."""
    if not tables.has("tcp_connection"):
        return None
    row = tables.db.execute(
        """
        SELECT peer FROM tcp_connection
        WHERE ts < $end AND coalesce(ts_end, $end) >= $begin AND retransmits > 0
        ORDER BY tid = $tid DESC, retransmits DESC, id LIMIT 1
        """,
        {"begin": op["begin_ns"], "end": op["end_ns"], "tid": op["tid"]},
    ).fetchone()
    if row is None or row[0] is None:
        return None
    return {"kind": "peer", "comm": row[0], "pid": None, "tid": None}
