"""Compares what is said with what is true."""

import fnmatch

TOLERANCE = 0.10
SURE = ("high",)


def of_operation(said, op, truth, tables):
    """One explained operation. `verdict` is right, near, wrong, outside or silent.

    `outside` names somebody who has nothing to do with the run: on a machine that does other things,
    too, that may be true, and nobody here knows. It counts neither as right nor as wrong.
    """
    took_ms = (op["end_ns"] - op["begin_ns"]) / 1e6
    scored = {"call": op["call"], "took_ms": round(took_ms, 3), "truth_ms": op["true_blame_ms"]}
    scored.update(begin_ns=op["begin_ns"], end_ns=op["end_ns"], tid=op["tid"])
    if "failed" in said or not said.get("stories"):
        scored.update(verdict="silent", confidence="none", said=said.get("failed", "no story"))
        return scored
    story = said["stories"][0]
    parts = story["parts"]
    scored["confidence"] = story["confidence"]
    scored["said"] = story["verdict"]
    scored["parts"] = [brief(part) for part in parts[:4]]
    scored["unexplained_ms"] = story["unexplained_ns"] / 1e6
    window = story["target"]["end_ns"] - story["target"]["begin_ns"]
    scored["sum_error_ns"] = sum(part["dur_ns"] for part in parts) - window
    guilty = guilty_of(op, truth)
    place = story["culprit"]
    if place is None or story["confidence"] == "none":
        scored["verdict"] = "silent"
    else:
        top = parts[place]
        scored["grade"] = top["grade"]
        scored["verdict"] = judged(actor_of(top), guilty, op, tables)
        if guilty:
            scored["mechanism_said"] = top["mechanism"]
            scored["mechanism"] = bool({top["mechanism"], top["root"]} & set(guilty["mechanisms"]))
            scored["mechanism_meant"] = top["mechanism"] == guilty["mechanisms"][0]
            scored["object"] = is_about(top, story["chain"], guilty)
    if guilty:
        scored.update(blame(parts, op, truth, tables))
    return scored


def guilty_of(op, truth):
    """Who is guilty of most of it."""
    if not truth["culprits"]:
        return None
    most = max(range(len(op["true_blame_ms"])), key=lambda n: op["true_blame_ms"][n])
    return truth["culprits"][most]


def judged(actor, guilty, op, tables):
    if guilty is None:
        # Without a fault, whoever is named except the victim and its own disk or timer is wrong.
        if actor["kind"] in ("own", "timer", "device"):
            return "own"
    elif is_same(actor, guilty, op, tables):
        return "right"
    elif is_near(actor, guilty):
        return "near"
    is_process = actor["kind"] == "process" and actor["pid"] is not None
    is_outside = is_process and actor["pid"] not in tables.known
    # Who had the CPU did have it, whatever for: a thread of the kernel, or what makes the fault and
    # writes down meanwhile how it went.
    is_beside = actor["kind"] == "kernel" or (is_process and actor["pid"] == tables.maker)
    is_outside |= is_beside and actor.get("mechanism") == "cpu_runqueue"
    return "outside" if is_outside else "wrong"


def actor_of(part):
    """The culprit of a part, with what it is said to have done."""
    thing = part["object"]
    about = thing["name"] if thing else None
    return {**part["culprit"], "mechanism": part["mechanism"], "object": about}


def is_same(actor, guilty, op, tables):
    kind = guilty["kind"]
    if kind in ("cgroup", "device") and actor["kind"] == "own":
        # The limit is the victim's own, and so is what it asks a bad disk for: the mechanism says
        # it, and of a disk which one.
        is_it = actor.get("object") == guilty["name"] or kind == "cgroup"
        return is_it and actor.get("mechanism") in guilty["mechanisms"]
    if kind == "own":
        return actor["kind"] == "own" and actor["tid"] in (None, op["tid"])
    if kind == "process":
        if guilty["tid"] is not None and guilty["pid"] == op["pid"]:
            # A thread of the victim's own process: only it is guilty.
            return actor["tid"] == guilty["tid"]
        if guilty["with_children"] and actor["pid"] is not None:
            return actor["pid"] in tables.descendants(guilty["pid"])
        return actor["pid"] == guilty["pid"]
    if kind == "peer":
        return actor["kind"] == "peer" and actor["name"].startswith(guilty["name"])
    names = {actor["name"], actor["name"].rpartition("/")[2]}
    return actor["kind"] == kind and guilty["name"] in names


def is_near(actor, guilty):
    if guilty["pid"] is not None and actor["pid"] == guilty["pid"]:
        return True
    return any(fnmatch.fnmatch(actor["name"], name) for name in guilty["near"])


def is_about(part, chain, guilty):
    """Whether the part, or the step of the chain it stands for, names one of the objects; null where
    there is none to be named."""
    wanted = guilty["objects"]
    if not wanted:
        return None
    named = [thing for thing in [part["object"]] if thing]
    for place in [part, *chain]:
        if place.get("activity") and place["activity"]["path"]:
            named.append({"kind": "file", "name": place["activity"]["path"]})
        if place.get("object"):
            named.append(place["object"])
    return any(
        same_object(thing["name"], want["name"], want["kind"]) for thing in named for want in wanted
    )


def same_object(named, wanted, kind):
    if kind in ("futex", "lock"):
        # One is written as the program prints addresses, the other as the tables do.
        return named.lower().removeprefix("0x").lstrip("0") == wanted[2:].lower().lstrip("0")
    last = named.rpartition("/")[2]
    return (
        wanted in (named, last)
        or fnmatch.fnmatch(named, wanted)
        or (kind in ("peer", "host", "any", "irq", "journal") and wanted.lower() in named.lower())
    )


def blame(parts, op, truth, tables):
    """Milliseconds put down to the culprits, against those that are theirs."""
    right = others = 0.0
    for part in parts:
        if any(is_same(actor_of(part), guilty, op, tables) for guilty in truth["culprits"]):
            right += part["dur_ns"] / 1e6
        elif part["culprit"]["kind"] not in ("own", "unknown", "timer"):
            others += part["dur_ns"] / 1e6
    true = sum(op["true_blame_ms"])
    blamed = right + others
    took = (op["end_ns"] - op["begin_ns"]) / 1e6
    is_own = any(guilty["kind"] == "own" for guilty in truth["culprits"])
    return {
        # Of an own fault nobody else is to be blamed, whatever else it does meanwhile is its own.
        "precision": round(min(right, true) / blamed, 4) if blamed else 0.0,
        "recall": round(min(right / true, took / true), 4) if true else None,
        "recall_is_bounded": not is_own,
    }


def of_recording(said, truth, tables):
    """What is said of the whole recording without a question: findings and patterns."""
    if "failed" in said:
        return {"failed": said["failed"]}
    wanted = {kind for guilty in truth["culprits"] for kind in guilty["findings"]}
    findings = [finding["kind"] for finding in said["findings"]]
    patterns = [pattern["class"] for pattern in said["patterns"]]
    stories = [
        {
            "confidence": story["confidence"],
            "said": story["verdict"],
            "verdict": best_match(story, truth, tables),
        }
        for story in said["stories"]
    ]
    return {
        "wanted": sorted(wanted),
        "found": sorted(wanted & {*findings, *patterns}),
        "findings": findings,
        "patterns": patterns,
        "stories": stories[:5],
        "tracer_share": said["tracer_share"],
    }


def best_match(story, truth, tables):
    """Whether a story that was not asked for names any of the culprits."""
    if story["culprit"] is None:
        return "silent"
    actor = actor_of(story["parts"][story["culprit"]])
    op = {"pid": story["target"]["actor"]["pid"], "tid": story["target"]["actor"]["tid"]}
    found = [judged(actor, guilty, op, tables) for guilty in truth["culprits"] or [None]]
    return min(found, key=["right", "own", "near", "outside", "wrong"].index)


def of_name(answer, op, truth, tables):
    """What a simpler method says: a thread, a device, or nothing."""
    if answer is None:
        return {"verdict": "silent"}
    actor = {"kind": "process", "name": answer["comm"], "pid": answer["pid"], "tid": answer["tid"]}
    if answer["tid"] == op["tid"]:
        actor["kind"] = "own"
    guilty = guilty_of(op, truth)
    verdict = judged(actor, guilty, op, tables)
    return {"verdict": verdict, "said": answer["comm"], "ms": answer.get("ms")}


def brief(part):
    actor, thing = part["culprit"], part["object"]
    return {
        "mechanism": part["mechanism"],
        "root": part["root"],
        "who": f"{actor['kind']} {actor['name']}[{actor['tid'] or actor['pid'] or ''}]",
        "object": f"{thing['kind']} {thing['name']}" if thing else None,
        "activity": part["activity"]["call"] if part["activity"] else None,
        "ms": round(part["dur_ns"] / 1e6, 3),
        "grade": part["grade"],
    }
