"""Compares answers of `explain` about real programs with the truth.

Verdicts on an answer:

right      names the culprit, or another name of it (the client that a server works for)
near       names a thread that works for the culprit, such as the journal thread
partly     names a process between victim and culprit, or the culprit's process where a thread is meant
dead_end   stops at the wait itself: a peer did not reply, the thread slept, the waker is unknown
wrong      names anything else
outside    names a process that is not part of the run, which cannot be verified
silent     names nothing
other      explains a wait of the culprit itself, of which the truth is not known (whole recording only)
own        without a fault: names only the victim, its timer or its disk
"""

import fnmatch

from explaining import score
from explaining.score import actor_of, is_about, is_near

# In the order in which a finding that matches one of several culprits is judged.
VERDICTS = ["right", "near", "partly", "dead_end", "wrong", "outside", "silent", "other"]
GOOD = ("right", "near")
# Verdicts that are neither right nor wrong.
UNJUDGED = ("outside", "silent", "other", "own")
CONFIDENCES = ("high", "medium", "low")
# Last steps of an answer that went no further.
DEAD_ENDS = {
    "local_ipc",
    "network_remote",
    "timer_sleep",
    "woken_by",
    "unknown",
    "still_blocked",
    "lost",
    "kernel_wait",
    "child_wait",
    "unseen_wait",
    "io_wait",
}
# Last steps that do not show what even a named process did: that it did not reply is no cause.
NO_REPLY = {"local_ipc", "network_remote", "woken_by", "unknown"}
MS_TOLERANCE = 0.10
FIRST = 3


def culprit_of(finding):
    """The part that a finding blames; None if it names no culprit."""
    place = finding.get("culprit")
    if place is None or finding["confidence"] == "none":
        return None
    return finding["parts"][place]


def verdict_of(part, guilty, op, tables):
    """Verdict on one blamed part, for one culprit; `guilty` is None without a fault."""
    actor = actor_of(part)
    if guilty is None:
        if actor["kind"] in ("own", "timer", "device"):
            return "own"
        return "outside" if is_outside(actor, tables) else "wrong"
    if is_same(actor, part, guilty, op, tables):
        return "dead_end" if part["root"] in NO_REPLY - set(guilty["mechanisms"]) else "right"
    if is_near(actor, {**guilty, "pid": None}):
        return "near"
    if is_partly(actor, guilty):
        return "partly"
    if is_outside(actor, tables):
        return "outside"
    # Where a process of this machine is meant, an address is only the other end of the wait.
    is_end = is_dead_end(actor, part) or (actor["kind"] == "peer" and guilty["kind"] != "peer")
    return "dead_end" if is_end else "wrong"


def is_same(actor, part, guilty, op, tables):
    if guilty["kind"] == "cgroup" and actor["pid"] in guilty["also"] and actor["pid"] is not None:
        # The limit is that of the named process: the mechanism identifies it.
        return bool({part["mechanism"], part["root"]} & set(guilty["mechanisms"]))
    if actor["pid"] is not None and actor["pid"] in guilty["also"]:
        return True
    if guilty["tids"]:
        return actor["tid"] in guilty["tids"]
    if guilty["kind"] == "own":
        # The victim is its own culprit only by what it did: that it slept or waited is no answer.
        is_meant = bool({part["mechanism"], part["root"]} & set(guilty["mechanisms"]))
        return is_meant and score.is_same(actor, guilty, op, tables)
    return score.is_same(actor, guilty, op, tables)


def is_partly(actor, guilty):
    if guilty["tids"] and actor["pid"] is not None and actor["pid"] == guilty["pid"]:
        return True
    return any(fnmatch.fnmatchcase(actor["name"], name) for name in guilty["middlemen"])


def is_dead_end(actor, part):
    if actor["kind"] in ("timer", "unknown"):
        return True
    return part["root"] in DEAD_ENDS or (
        part["mechanism"] in DEAD_ENDS and actor["kind"] in ("own", "peer")
    )


def is_outside(actor, tables):
    is_process = actor["kind"] == "process" and actor["pid"] is not None
    outside = is_process and actor["pid"] not in tables.known
    # A kernel thread, or the injector, was on CPU for real, for whatever reason.
    is_background = actor["kind"] == "kernel" or (is_process and actor["pid"] == tables.maker)
    return outside or (is_background and actor.get("mechanism") == "cpu_runqueue")


def best(part, culprits, op, tables):
    """(verdict, culprit) for the culprit that the part fits best."""
    judged = [(verdict_of(part, guilty, op, tables), guilty) for guilty in culprits]
    return min(judged, key=lambda pair: VERDICTS.index(pair[0]))


def of_answer(answer, op, truth, tables):
    """The first finding of an answer about an operation of the victim."""
    findings = answer.get("findings") or []
    if not findings:
        return {"verdict": "silent", "confidence": "none", "said": answer.get("failed", "no finding")}
    finding = findings[0]
    scored = {"confidence": finding["confidence"], "said": finding["verdict"]}
    part = culprit_of(finding)
    if part is None:
        return {**scored, "verdict": "silent"}
    guilty = score.guilty_of(op, truth)
    scored["verdict"] = verdict_of(part, guilty, op, tables)
    scored.update(named(part))
    if scored["verdict"] in GOOD:
        scored.update(details(finding, part, guilty, op, truth, tables))
    return scored


def named(part):
    actor = part["culprit"]
    return {
        "culprit": f"{actor['kind']} {actor['name']}[{actor['tid'] or actor['pid'] or ''}]",
        "mechanism_said": [part["mechanism"], part["root"]],
        "grade": part["grade"],
    }


def details(finding, part, guilty, op, truth, tables):
    """Mechanism, object and milliseconds of an answer that names the culprit."""
    found = {
        "mechanism": bool({part["mechanism"], part["root"]} & set(guilty["mechanisms"])),
        "object": is_about(part, finding["chain"], guilty),
    }
    if not guilty["objects"]:
        found["object"] = None
    elif not found["object"]:
        # The client that a server works for may be named by the culprit itself.
        found["object"] = part["culprit"]["pid"] in guilty["also"]
    if part["culprit"]["tid"] in guilty["tids"]:
        # A thread is known by its own name, not by that of its process.
        found["thread"] = fnmatch.fnmatchcase(part["culprit"]["name"], guilty["name"])
    true = op["true_blame_ms"][truth["culprits"].index(guilty)]
    said = sum(
        one["dur_ns"] / 1e6
        for one in finding["parts"]
        if verdict_of(one, guilty, op, tables) in GOOD
    )
    found.update(ms_true=true, ms_said=round(said, 3))
    found["ms"] = abs(said - true) <= MS_TOLERANCE * true
    return found


def of_recording(answer, truth, tables):
    """Findings of the whole recording, without any filter; the first ones are judged."""
    findings = [one for one in answer.get("findings") or [] if is_of_run(one, truth, tables)]
    judged = [of_finding(finding, truth, tables) for finding in findings[:FIRST]]
    found = {"findings": judged, "left_out": len(answer.get("findings") or []) - len(findings)}
    if "failed" in answer:
        found["failed"] = answer["failed"]
    if not truth["culprits"]:
        found["quiet"] = not any(is_false_blame(one) for one in judged)
        return found
    found["top1"] = bool(judged) and judged[0]["verdict"] in GOOD
    found["top3"] = any(one["verdict"] in GOOD for one in judged)
    of = {one["of"] for one in judged if one["verdict"] in GOOD}
    found["all_top3"] = of == set(range(len(truth["culprits"])))
    return found


def is_false_blame(judged):
    """A culprit of a load without a fault. At low confidence it is only a remark."""
    return judged["verdict"] == "wrong" and judged["confidence"] in ("high", "medium")


def is_of_run(finding, truth, tables):
    """Whether a finding is about a victim in the run, or names its culprit.

    The whole machine is recorded. A finding about its other work is true or not, but the truth of
    this run does not show which.
    """
    if is_victim(finding, tables):
        return True
    part = culprit_of(finding)
    if part is None or not truth["culprits"]:
        return False
    return is_found(*best(part, truth["culprits"], op_of(finding), tables), part)


def is_victim(finding, tables):
    """Whether a finding is about a process of the run, and not about the recorder."""
    pid = finding["target"]["actor"]["pid"]
    return pid is None or pid in tables.family - tables.tracers


def is_found(verdict, guilty, part):
    """Whether a finding about another process shows the fault: the culprit that does what was injected.

    That a culprit is also on a CPU, which others wait for, is another matter.
    """
    return verdict in GOOD and bool({part["mechanism"], part["root"]} & set(guilty["mechanisms"][:1]))


def op_of(finding):
    """The victim of a finding as an operation of the truth."""
    actor = finding["target"]["actor"]
    return {"pid": actor["pid"], "tid": actor["tid"]}


def of_finding(finding, truth, tables):
    scored = {"confidence": finding["confidence"], "said": finding["verdict"]}
    part = culprit_of(finding)
    if part is None:
        return {**scored, "verdict": "silent"}
    scored.update(named(part))
    target, op = finding["target"], op_of(finding)
    if not truth["culprits"]:
        return {**scored, "verdict": verdict_of(part, None, op, tables)}
    verdict, guilty = best(part, truth["culprits"], op, tables)
    victims = {(one["pid"], one["tid"]) for one in truth["ops"]}
    if is_of_culprit(target, victims, guilty):
        verdict = "other"
    place = truth["culprits"].index(guilty)
    return {**scored, "verdict": verdict, "of": place if verdict in GOOD else None}


def is_of_culprit(target, victims, guilty):
    """Whether a finding explains a wait of the culprit itself, which is not the fault.

    A request that the culprit serves is a victim, and so may be another thread of the culprit's process.
    """
    if guilty["kind"] != "process":
        return False
    pid, tid = target["actor"]["pid"], target["actor"]["tid"]
    if (pid, tid) in victims:
        return False
    if pid is not None and pid in guilty["also"]:
        return True
    if target["kind"] == "request" or pid != guilty["pid"] or pid is None:
        return False
    return not guilty["tids"] or tid in guilty["tids"]


def of_baseline(answer, op, truth, tables):
    """Verdict on a simpler method, which names a thread, a peer, or nothing."""
    if answer is None:
        return {"verdict": "silent"}
    actor = {"kind": "process", **answer, "name": answer["comm"] or ""}
    if answer["tid"] == op["tid"] and answer["tid"] is not None:
        actor["kind"] = "own"
    part = {"culprit": actor, "object": None, "mechanism": "", "root": ""}
    if actor["kind"] == "peer":
        part.update(mechanism="network_retransmit", root="network_retransmit")
    guilty = score.guilty_of(op, truth)
    return {"verdict": verdict_of(part, guilty, op, tables), "said": answer["comm"]}


def claims(result):
    """(confidence, is right) of every claim of a run that the truth can judge."""
    answers = [answer for op in result["ops"] for answer in op["answers"].values()]
    answers += result["alone"]["findings"][:1]
    if "slow" in result:
        answers.append(result["slow"])
    for answer in answers:
        if answer["verdict"] not in UNJUDGED and answer["confidence"] in CONFIDENCES:
            yield answer["confidence"], answer["verdict"] in GOOD
