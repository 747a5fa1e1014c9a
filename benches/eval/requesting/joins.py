"""Checks that requests found in sockets are those that applications and clients logged."""

# Applications take the start time after reading the first byte, some in microseconds. Their end time is unreliable:
# some take it before the last byte is written, a JVM on busy CPUs tens of ms after.
ROUND_NS = 1_000_000
SHARE_MIN = 0.95


def check(incident, recording, checks):
    check_truth(incident, checks)
    if not recording.has("request"):
        checks.skip("joins", "no requests in the recording")
        return
    check_server(incident, recording, checks)
    check_threads(incident, recording, checks)
    check_clients(incident, recording, checks)


def plain(address):
    """Normalizes IPv4-mapped IPv6 addresses."""
    return (address or "").replace("[::ffff:", "").replace("::ffff:", "").replace("]", "")


def found(incident, recording):
    """For each request in the application's log, the rows of the same connection and time."""
    rows = recording.all(
        "SELECT id, ts, ts_end, local, peer, tid FROM request WHERE role = 'server' AND source = 'socket'"
    )
    sides = {}
    for row in rows:
        sides.setdefault((plain(row[3]), plain(row[4])), []).append(row)
    for truth in incident.served:
        side = (plain(truth["local"]), plain(truth["peer"]))
        rows = sides.get(side, [])
        # The next request on a connection may start within the rounding error.
        exact = [row for row in rows if row[1] <= truth["begin_ns"] <= (row[2] or truth["begin_ns"])]
        yield truth, exact or [row for row in rows if is_same_time(truth, *row[1:3])]


def is_same_time(truth, begin, end):
    return begin <= truth["begin_ns"] + ROUND_NS and (end is None or end >= truth["begin_ns"])


def check_truth(incident, checks):
    """Both ends logged the same requests; the other checks rely on it."""
    served = {row["trace_id"]: row for row in incident.served}
    same = sum(
        is_same_request(row, served[row["trace_id"]]) for row in incident.load if row["trace_id"] in served
    )
    checks.check("truth: client and application logged the same", same == len(incident.load), f"{same} of {len(incident.load)}")


def is_same_request(client, server):
    sides = (client["local"], client["peer"]) == (plain(server["peer"]), plain(server["local"]))
    end = client["start_ns"] + client["total_ns"]
    # A server that logs after writing the response may do so after the client received it.
    return sides and client["start_ns"] - ROUND_NS <= server["begin_ns"] <= end


def check_server(incident, recording, checks):
    right = wrong = 0
    for truth, rows in found(incident, recording):
        is_right = len(rows) == 1 and rows[0][5] == truth["tid"]
        right += is_right
        wrong += bool(rows) and not is_right
    count = len(incident.served)
    checks.check("joins: requests have the right connection and thread", right >= SHARE_MIN * count, f"{right} of {count}")
    checks.check("joins: none has a wrong one", not wrong, str(wrong))


def check_threads(incident, recording, checks):
    """The worker thread of a request is one of its threads."""
    handed = [(truth, rows) for truth, rows in found(incident, recording) if truth.get("counter_tid")]
    if not handed:
        return
    if not recording.has("request_thread"):
        checks.skip("threads", "no request threads in the recording")
        return
    threads = {}
    for request, tid in recording.all("SELECT request, tid FROM request_thread"):
        threads.setdefault(request, set()).add(tid)
    right = sum(
        any(truth["counter_tid"] in threads.get(row[0], ()) for row in rows) for truth, rows in handed
    )
    others = {truth["counter_tid"] for truth, _ in handed}
    wrong = sum(
        any((threads.get(row[0], set()) & others) - {truth["counter_tid"]} for row in rows) for truth, rows in handed
    )
    checks.check("threads: finds the worker thread of a request", right >= SHARE_MIN * len(handed), f"{right} of {len(handed)}")
    checks.check("threads: finds no worker thread of another request", not wrong, str(wrong))


def check_clients(incident, recording, checks):
    """The client's row and the server's row have the trace id that the application received."""
    rows = recording.all(
        "SELECT c.seq, s.tid, s.local, s.peer, s.ts, s.ts_end FROM request c"
        " LEFT JOIN request s ON s.id = c.server_request"
        " WHERE c.role = 'client' AND c.source = 'load'"
    )
    if not rows:
        checks.skip("clients", "no load in the recording")
        return
    traces = {row["seq"]: row["trace_id"] for row in incident.load}
    served = {row["trace_id"]: row for row in incident.served}
    right = wrong = 0
    for seq, tid, local, peer, begin, end in rows:
        truth = served.get(traces.get(seq))
        if tid is None or truth is None:
            continue
        sides = (plain(local), plain(peer)) == (plain(truth["local"]), plain(truth["peer"]))
        is_right = sides and tid == truth["tid"] and is_same_time(truth, begin, end)
        right += is_right
        wrong += not is_right
    checks.check("clients: joined to the server's requests", right >= SHARE_MIN * len(rows), f"{right} of {len(rows)}")
    checks.check("clients: none joined to a wrong one", not wrong, str(wrong))
