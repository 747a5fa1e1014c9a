"""The results as lines of text."""

import math

VERDICTS = ["right", "near", "wrong", "outside", "silent"]
BASELINES = ["syscalls", "block", "offwake", "graph", "flatten"]


def wilson(count, of, z=1.96):
    """Wilson score interval of a share, 95 %."""
    if of == 0:
        return 0.0, 1.0
    share = count / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    reach = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def share(count, of):
    if of == 0:
        return "–"
    low, high = wilson(count, of)
    return f"{count}/{of} = {100 * count / of:.0f} % ({100 * low:.0f}–{100 * high:.0f} %)"


def brief(count, of):
    return f"{count}/{of}" if of else "–"


def ops_of(results, variant="whole"):
    return [
        (result, op)
        for result in results
        for op in result.get("evaluated", {}).get(variant, {}).get("ops", [])
    ]


def is_null(result):
    return not result["culprits"]


def line(result):
    """The line of one run."""
    head = f"{result['number']:>4} {result['scenario']} seed {result['seed']}"
    if "skipped" in result:
        return f"{head}: skipped: {result['skipped']}"
    ops = result["evaluated"]["whole"]["ops"]
    words = [
        op["verdict"] + ("" if op["confidence"] == "high" else f"/{op['confidence']}") for op in ops
    ]
    load = "–".join(f"{load:.1f}" for load in result["load"])
    return f"{head}: {' '.join(words) or 'no slow operations'}; load {load}"


def summary(results):
    ops = [(result, op) for result, op in ops_of(results) if not is_null(result)]
    judged = [op for _, op in ops if op["verdict"] != "outside"]
    yield f"{len(results)} runs, {len(ops)} slow operations of {len({r['scenario'] for r, _ in ops})} faults"
    yield "culprit named:                 " + share(
        sum(op["verdict"] == "right" for op in judged), len(judged)
    )
    with_near = sum(op["verdict"] in ("right", "near") for op in judged)
    yield "  or a thread working for it:  " + share(with_near, len(judged))
    for key, what in (
        ("mechanism", "mechanism, any step:          "),
        ("mechanism_meant", "mechanism, the injected one:  "),
    ):
        known = [op[key] for op in judged if key in op]
        yield f"{what} {share(sum(known), len(known))}"
    known = [op["object"] for op in judged if op.get("object") is not None]
    yield "object named:                  " + share(sum(known), len(known))
    yield from sums(judged)
    yield "wrong claims of high confidence:    " + wrong_claims(results)
    yield "  if `outside` counts as wrong:     " + wrong_claims(results, outside=True)
    nulls = [(result, op) for result, op in ops_of(results) if is_null(result)]
    silent = sum(is_abstention(op) for _, op in nulls)
    yield "no false blame without a fault:     " + share(silent, len(nulls))
    for grade in "ABC":
        of_grade = [op for op in judged if op.get("grade") == grade]
        good = sum(op["verdict"] in ("right", "near") for op in of_grade)
        yield f"grade {grade} right:                 {share(good, len(of_grade))}"
    times = sorted(op["explain_ms"] for _, op in ops_of(results))
    if times:
        yield f"one explain: median {times[len(times) // 2]:.0f} ms, max {times[-1]:.0f} ms"


def sums(judged):
    exact = [op for op in judged if "sum_error_ns" in op]
    off = sum(op["sum_error_ns"] != 0 for op in exact)
    yield f"parts that do not add up:      {off} of {len(exact)}"
    for key in ("precision", "recall"):
        known = sorted(
            op[key] for op in judged if op.get(key) is not None and op["verdict"] != "silent"
        )
        if known:
            within = sum(value >= 0.9 for value in known)
            yield f"blame {key + ' ≥ 0.9:':<25}{share(within, len(known))}, median {known[len(known) // 2]:.2f}"


def is_wrong_claim(op):
    return op["confidence"] == "high" and op["verdict"] == "wrong"


def is_abstention(op):
    return op["verdict"] in ("silent", "own") or op["confidence"] != "high"


def sure_of(results, variant="whole", outside=False):
    """Claims of high confidence, and the wrong ones among them."""
    sure = [op for _, op in ops_of(results, variant) if op["confidence"] == "high"]
    if not outside:
        sure = [op for op in sure if op["verdict"] != "outside"]
    wrong = [op for op in sure if is_wrong_claim(op) or op["verdict"] == "outside"]
    return sure, wrong


def wrong_claims(results, variant="whole", outside=False):
    sure, wrong = sure_of(results, variant, outside)
    return share(len(wrong), len(sure))


# Thresholds for a change, on a machine that does other work: a few operations of each fault are not a
# measurement, but reveal a broken rule.
NAMED_MIN, WRONG_MAX = 0.7, 1


def complaints(results, variants):
    """Results that must not be merged."""
    judged = [
        op for result, op in ops_of(results) if not is_null(result) and op["verdict"] != "outside"
    ]
    named = sum(op["verdict"] in ("right", "near") for op in judged)
    if len(judged) < len(results):
        yield f"only {len(judged)} slow operations of {len(results)} runs"
    elif named < NAMED_MIN * len(judged):
        yield f"the culprit was named in {named} of {len(judged)} operations"
    off = sum(op.get("sum_error_ns", 0) != 0 for op in judged)
    if off:
        yield f"the parts of {off} observations do not add up"
    for variant in variants:
        wrong = sure_of(results, variant)[1]
        if len(wrong) > WRONG_MAX:
            yield f"{variant}: {len(wrong)} wrong claims of high confidence"


def by_scenario(results):
    """Name → its results that were not skipped, ordered by number."""
    names = {}
    for result in results:
        if "skipped" not in result:
            names.setdefault(result["scenario"], []).append(result)
    return names


def counts(ops, key=None):
    """Number of each verdict; of a baseline if `key` is its name."""
    verdicts = [(op["baselines"][key] if key else op)["verdict"] for op in ops]
    return {name: verdicts.count(name) for name in [*VERDICTS, "own"]}
