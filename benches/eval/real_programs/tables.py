"""The results as lines of text."""

from explaining.tables import brief, share

from . import score
from .baselines import BASELINES
from .runs import WAYS

ALL_WAYS = (*WAYS, "slow")
HALVES = ("tuned", "sealed")
# What is compared of right answers.
DETAILS = {
    "mechanism": "mechanism",
    "object": "object",
    "thread": "thread by its own name",
    "ms": "ms within 10 %",
}
# Share of right claims that each confidence has to reach.
CALIBRATED = {"high": 0.99, "medium": 0.85, "low": 0.60}


def done_of(results):
    return [result for result in results if "skipped" not in result]


def with_fault(results):
    return [result for result in done_of(results) if result["culprits"]]


def nulls_of(results):
    return [result for result in done_of(results) if not result["culprits"]]


def answers_of(results, way):
    """All answers to queries of one kind."""
    if way == "slow":
        return [result["slow"] for result in with_fault(results) if "slow" in result]
    ops = [op for result in with_fault(results) for op in result["ops"]]
    return [op["answers"][way] for op in ops if way in op["answers"]]


def queried_of(results):
    return [answer for way in ALL_WAYS for answer in answers_of(results, way)]


def judged(answers):
    """Without those that name a process outside of the run."""
    return [answer for answer in answers if answer["verdict"] != "outside"]


def right(answers):
    return sum(answer["verdict"] in score.GOOD for answer in answers)


def known(answers, key):
    return [answer[key] for answer in answers if answer.get(key) is not None]


def line(result):
    """The line of one run. For the sealed half only whether the verdicts are right."""
    head = f"{result['half']:<6} {result['scenario']} seed {result['seed']}"
    if "skipped" in result:
        return f"{head}: skipped: {result['skipped']}"
    load = "–".join(f"{load:.1f}" for load in result["load"])
    alone = [words(one) for one in result["alone"]["findings"]]
    if not result["culprits"]:
        quiet = "quiet" if result["alone"]["quiet"] else "blames"
        return f"{head}: {quiet} ({' '.join(alone) or 'no finding'}); load {load}"
    text = [f"alone {' '.join(alone) or 'no finding'}"]
    for way in ALL_WAYS:
        if found := answers_of([result], way):
            text.append(f"{way} {' '.join(words(one) for one in found)}")
    return f"{head}: {'; '.join(text)}; load {load}"


def words(answer):
    sure = answer["confidence"]
    return answer["verdict"] + ("" if sure in ("high", "none") else f"/{sure}")


def summary(results):
    """The figures of each half, one below the other."""
    for half in HALVES:
        of_half = [result for result in results if result["half"] == half]
        if done_of(of_half):
            yield f"{half}:"
            yield from (f"  {text}" for text in figures(of_half))


def figures(results):
    faults, nulls = with_fault(results), nulls_of(results)
    names = {result["scenario"] for result in faults}
    yield f"{len(faults)} runs of {len(names)} faults, {len(nulls)} runs without a fault"
    for key, what in (
        ("top1", "alone, first finding:          "),
        ("top3", "alone, one of the first three: "),
    ):
        yield what + share(sum(result["alone"][key] for result in faults), len(faults))
    double = [result for result in faults if len(result["culprits"]) > 1]
    if double:
        both = sum(result["alone"]["all_top3"] for result in double)
        yield "all of several faults:         " + share(both, len(double))
    queried = judged(queried_of(faults))
    yield "queried, first finding:        " + share(right(queried), len(queried))
    for way in ALL_WAYS:
        found = judged(answers_of(faults, way))
        yield f"  {way:<29}" + share(right(found), len(found))
    for key, what in DETAILS.items():
        found = known(queried, key)
        yield f"{what + ':':<31}" + share(sum(found), len(found))
    yield from calibration(results)
    quiet = sum(result["alone"]["quiet"] for result in nulls)
    yield "quiet without a fault:         " + share(quiet, len(nulls))


def calibration(results):
    for sure, of, good in calibrated(results):
        target = f"{100 * CALIBRATED[sure]:.0f} %"
        yield f"claims, {sure + ' confidence:':<23}{share(good, of)} right, target {target}"


def calibrated(results):
    """(confidence, claims, right claims)."""
    claims = [claim for result in done_of(results) for claim in score.claims(result)]
    for sure in score.CONFIDENCES:
        of_it = [is_right for confidence, is_right in claims if confidence == sure]
        yield sure, len(of_it), sum(of_it)


def by_scenario(results):
    names = {}
    for result in done_of(results):
        names.setdefault(result["scenario"], []).append(result)
    return names


HEADER = (
    "scenario",
    "top 1",
    "top 3",
    *ALL_WAYS,
    "mechanism",
    "object",
    "ms",
    "high and wrong",
)


def rows(results):
    """Cells of the table of scenarios, faults first."""
    for name, found in by_scenario(with_fault(results)).items():
        queried = judged(queried_of(found))
        cells = [name]
        cells += [brief(sum(one["alone"][key] for one in found), len(found)) for key in ("top1", "top3")]
        for way in ALL_WAYS:
            answers = judged(answers_of(found, way))
            cells.append(brief(right(answers), len(answers)))
        cells += [brief(sum(known(queried, key)), len(known(queried, key))) for key in ("mechanism", "object", "ms")]
        claims = [claim for one in found for claim in score.claims(one)]
        wrong = sum(sure == "high" and not is_right for sure, is_right in claims)
        yield [*cells, str(wrong or "")]


def null_rows(results):
    for name, found in by_scenario(nulls_of(results)).items():
        quiet = sum(one["alone"]["quiet"] for one in found)
        findings = sum(len(one["alone"]["findings"]) for one in found)
        yield [name, brief(quiet, len(found)), str(findings)]


def baseline_cells(results, name):
    """Right verdicts, wrong verdicts, and operations, of explain (None) or a simpler method."""
    ops = [op for result in with_fault(results) for op in result["ops"]]
    if name is None:
        answers = [op["answers"]["window"] for op in ops]
    else:
        answers = [op["baselines"][name] for op in ops]
    wrong = sum(one["verdict"] in ("wrong", "dead_end", "partly") for one in answers)
    return right(answers), wrong, len(answers)


def aligned(header, lines):
    """A table for a terminal."""
    lines = [list(header), *lines]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    for cells in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()


def printed(results):
    """Everything that is printed after a run."""
    for half in HALVES:
        of_half = [result for result in results if result["half"] == half]
        if with_fault(of_half):
            yield from ["", f"{half} half, right of all:", "", *aligned(HEADER, rows(of_half))]
        if nulls_of(of_half):
            yield from ["", *aligned(("without a fault", "quiet", "findings"), null_rows(of_half))]
        if with_fault(of_half):
            yield ""
            for name in [None, *BASELINES]:
                good, wrong, of = baseline_cells(of_half, name)
                yield f"{name or 'explain':<12} {good} right, {wrong} wrong of {of}"
    yield ""
    yield from summary(results)
