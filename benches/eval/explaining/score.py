"""Compares explanations with the truth."""

import fnmatch

TOLERANCE = 0.10
SURE = ("high",)


def of_operation(explained, op, truth, tables):
    """One explained operation. `verdict` is right, near, wrong, outside or silent.

    `outside`: a process that is not part of the run. On a machine that does other work, that may be
    true, which cannot be verified. It counts neither as right nor as wrong.
    """
    took_ms = (op["end_ns"] - op["begin_ns"]) / 1e6
    scored = {"call": op["call"], "took_ms": round(took_ms, 3), "truth_ms": op["true_blame_ms"]}
    scored.update(begin_ns=op["begin_ns"], end_ns=op["end_ns"], tid=op["tid"])
    if "failed" in explained or not explained.get("findings"):
        scored.update(verdict="silent", confidence="none", said=explained.get("failed", "no observation"))
        return scored
    finding = explained["findings"][0]
    parts = finding["parts"]
    scored["confidence"] = finding["confidence"]
    scored["said"] = finding["verdict"]
    scored["parts"] = [brief(part) for part in parts[:4]]
    scored["unexplained_ms"] = finding["unexplained_ns"] / 1e6
    window = finding["target"]["end_ns"] - finding["target"]["begin_ns"]
    scored["sum_error_ns"] = sum(part["dur_ns"] for part in parts) - window
    guilty = guilty_of(op, truth)
    place = finding["culprit"]
    if place is None or finding["confidence"] == "none":
        scored["verdict"] = "silent"
    else:
        top = parts[place]
        scored["grade"] = top["grade"]
        scored["verdict"] = verdict_of(actor_of(top), guilty, op, tables)
        if guilty:
            scored["mechanism_said"] = top["mechanism"]
            scored["mechanism"] = bool({top["mechanism"], top["root"]} & set(guilty["mechanisms"]))
            scored["mechanism_meant"] = top["mechanism"] == guilty["mechanisms"][0]
            scored["object"] = is_about(top, finding["chain"], guilty)
    if guilty:
        scored.update(blame(parts, op, truth, tables))
    return scored


def guilty_of(op, truth):
    """The culprit with the largest part of the operation."""
    if not truth["culprits"]:
        return None
    most = max(range(len(op["true_blame_ms"])), key=lambda n: op["true_blame_ms"][n])
    return truth["culprits"][most]


def verdict_of(actor, guilty, op, tables):
    if guilty is None:
        # Without a fault, only the victim and its own disk or timer are valid culprits.
        if actor["kind"] in ("own", "timer", "device"):
            return "own"
    elif is_same(actor, guilty, op, tables):
        return "right"
    elif is_near(actor, guilty):
        return "near"
    is_process = actor["kind"] == "process" and actor["pid"] is not None
    is_outside = is_process and actor["pid"] not in tables.known
    # A kernel thread, or the injector while it writes its log, was on CPU for real, for whatever
    # reason.
    is_background = actor["kind"] == "kernel" or (is_process and actor["pid"] == tables.maker)
    is_outside |= is_background and actor.get("mechanism") == "cpu_runqueue"
    return "outside" if is_outside else "wrong"


def actor_of(part):
    """The culprit of a part, with its mechanism and object."""
    thing = part["object"]
    about = thing["name"] if thing else None
    return {**part["culprit"], "mechanism": part["mechanism"], "object": about}


def is_same(actor, guilty, op, tables):
    kind = guilty["kind"]
    if kind in ("cgroup", "device") and actor["kind"] == "own":
        # The limit is the victim's own, and so are its requests to a bad disk: the mechanism
        # identifies the culprit, and the object the disk.
        is_it = actor.get("object") == guilty["name"] or kind == "cgroup"
        return is_it and actor.get("mechanism") in guilty["mechanisms"]
    if kind == "own":
        return actor["kind"] == "own" and actor["tid"] in (None, op["tid"])
    if kind == "process":
        if guilty["tid"] is not None and guilty["pid"] == op["pid"]:
            # A thread of the victim's own process: the tid has to match.
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
    """Whether the part or its chain names one of the expected objects; None if none is expected."""
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
        # Addresses are formatted differently by the program and in the tables.
        return named.lower().removeprefix("0x").lstrip("0") == wanted[2:].lower().lstrip("0")
    last = named.rpartition("/")[2]
    return (
        wanted in (named, last)
        or fnmatch.fnmatch(named, wanted)
        or (kind in ("peer", "host", "any", "irq", "journal") and wanted.lower() in named.lower())
    )


def blame(parts, op, truth, tables):
    """Milliseconds attributed to the culprits, against the truth."""
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
        # If the victim itself is the culprit, its other time counts as its own, too.
        "precision": round(min(right, true) / blamed, 4) if blamed else 0.0,
        "recall": round(min(right / true, took / true), 4) if true else None,
        "recall_is_bounded": not is_own,
    }


def of_recording(explained, truth, tables):
    """Findings and patterns of the whole recording, without filters."""
    if "failed" in explained:
        return {"failed": explained["failed"]}
    wanted = {kind for guilty in truth["culprits"] for kind in guilty["observations"]}
    observations = [observation["kind"] for observation in explained["observations"]]
    patterns = [pattern["class"] for pattern in explained["patterns"]]
    findings = [
        {
            "confidence": finding["confidence"],
            "said": finding["verdict"],
            "verdict": best_match(finding, truth, tables),
        }
        for finding in explained["findings"]
    ]
    return {
        "wanted": sorted(wanted),
        "found": sorted(wanted & {*observations, *patterns}),
        "observations": observations,
        "patterns": patterns,
        "findings": findings[:5],
        "tracer_share": explained["tracer_share"],
    }


def best_match(finding, truth, tables):
    """Whether a observation of the whole recording names any of the culprits."""
    if finding["culprit"] is None:
        return "silent"
    actor = actor_of(finding["parts"][finding["culprit"]])
    op = {"pid": finding["target"]["actor"]["pid"], "tid": finding["target"]["actor"]["tid"]}
    found = [verdict_of(actor, guilty, op, tables) for guilty in truth["culprits"] or [None]]
    return min(found, key=["right", "own", "near", "outside", "wrong"].index)


def of_name(answer, op, truth, tables):
    """Verdict on a simpler method: a thread, a device, or none."""
    if answer is None:
        return {"verdict": "silent"}
    actor = {"kind": "process", "name": answer["comm"], "pid": answer["pid"], "tid": answer["tid"]}
    if answer["tid"] == op["tid"]:
        actor["kind"] = "own"
    guilty = guilty_of(op, truth)
    verdict = verdict_of(actor, guilty, op, tables)
    return {"verdict": verdict, "said": answer["comm"], "ms": answer.get("ms")}


def brief(part):
    actor, thing = part["culprit"], part["object"]
    return {
        "mechanism": part["mechanism"],
        "root": part["root"],
        "culprit": f"{actor['kind']} {actor['name']}[{actor['tid'] or actor['pid'] or ''}]",
        "object": f"{thing['kind']} {thing['name']}" if thing else None,
        "activity": part["activity"]["call"] if part["activity"] else None,
        "ms": round(part["dur_ns"] / 1e6, 3),
        "grade": part["grade"],
    }
