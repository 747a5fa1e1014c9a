"""Whether requests found in sockets are those that applications and clients logged."""

# An application takes the time after the first byte was read; in microseconds, some of them. When it takes the time
# of the end says little: some do before the last byte is written, and a JVM on busy CPUs tens of ms after.
ROUND_NS = 1_000_000
SHARE_MIN = 0.95


def judge(incident, recording, checks):
    judge_truth(incident, checks)
    if not recording.has("request"):
        checks.skip("joins", "the recording has no requests")
        return
    judge_server(incident, recording, checks)
    judge_threads(incident, recording, checks)
    judge_clients(incident, recording, checks)


def plain(address):
    """An address of IPv4 that an IPv6 socket has is the same one."""
    return (address or "").replace("[::ffff:", "").replace("::ffff:", "").replace("]", "")


def found(incident, recording):
    """For each request that the application logged, the ids of rows at its connection and time."""
    rows = recording.all(
        "SELECT id, ts, ts_end, local, peer, tid FROM request WHERE role = 'server' AND source = 'socket'"
    )
    sides = {}
    for row in rows:
        sides.setdefault((plain(row[3]), plain(row[4])), []).append(row)
    for truth in incident.served:
        side = (plain(truth["local"]), plain(truth["peer"]))
        rows = sides.get(side, [])
        # The next one on a connection may come within what is rounded off.
        exact = [row for row in rows if row[1] <= truth["begin_ns"] <= (row[2] or truth["begin_ns"])]
        yield truth, exact or [row for row in rows if is_same_time(truth, *row[1:3])]


def is_same_time(truth, begin, end):
    return begin <= truth["begin_ns"] + ROUND_NS and (end is None or end >= truth["begin_ns"])


def judge_truth(incident, checks):
    """Both ends logged the same request: without that there would be nothing to compare with."""
    served = {row["trace_id"]: row for row in incident.served}
    same = sum(
        is_same_request(row, served[row["trace_id"]]) for row in incident.load if row["trace_id"] in served
    )
    checks.check("truth: client and application logged the same", same == len(incident.load), f"{same} of {len(incident.load)}")


def is_same_request(client, server):
    sides = (client["local"], client["peer"]) == (plain(server["peer"]), plain(server["local"]))
    end = client["start_ns"] + client["total_ns"]
    # Who logs after the answer was written may do so when the client has it already.
    return sides and client["start_ns"] - ROUND_NS <= server["begin_ns"] <= end


def judge_server(incident, recording, checks):
    right = wrong = 0
    for truth, rows in found(incident, recording):
        is_right = len(rows) == 1 and rows[0][5] == truth["tid"]
        right += is_right
        wrong += bool(rows) and not is_right
    count = len(incident.served)
    checks.check("joins: requests at the right connection and thread", right >= SHARE_MIN * count, f"{right} of {count}")
    checks.check("joins: none at a wrong one", not wrong, str(wrong))


def judge_threads(incident, recording, checks):
    """The thread that was handed the work is one of the request's."""
    handed = [(truth, rows) for truth, rows in found(incident, recording) if truth.get("counter_tid")]
    if not handed:
        return
    if not recording.has("request_thread"):
        checks.skip("threads", "the recording has no threads of requests")
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
    checks.check("threads: who worked for a request is found", right >= SHARE_MIN * len(handed), f"{right} of {len(handed)}")
    checks.check("threads: nobody who worked for another", not wrong, str(wrong))


def judge_clients(incident, recording, checks):
    """The client's row and the server's row are of the same trace, as the application was told it."""
    rows = recording.all(
        "SELECT c.seq, s.tid, s.local, s.peer, s.ts, s.ts_end FROM request c"
        " LEFT JOIN request s ON s.id = c.server_request"
        " WHERE c.role = 'client' AND c.source = 'load'"
    )
    if not rows:
        checks.skip("clients", "the load is not part of the recording")
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
    checks.check("clients: requests of the load joined to the server's", right >= SHARE_MIN * len(rows), f"{right} of {len(rows)}")
    checks.check("clients: none to a wrong one", not wrong, str(wrong))
