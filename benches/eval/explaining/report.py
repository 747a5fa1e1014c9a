"""docs/evaluation.md, from the results."""

import pathlib
import platform
import subprocess

from . import tables
from .runs import ABLATIONS, ROOT
from .tables import BASELINES, brief, by_scenario, counts, is_null, ops_of

OUTPUT = ROOT / "docs/evaluation.md"

HEAD = """# How often `explain` is right

Made by `./dev eval explain --report`; do not edit. {runs} runs of {faults} faults, {ops} slow operations, on
Linux {kernel} with {cpus} CPUs; load average before a run {load}.

`workloads/fault.py` makes each fault on purpose, on and off within one run of a few seconds, with figures
drawn from a seed. Injector and victim stamp what they do themselves, so who is guilty of how many
milliseconds is known without the recording. Asked is about the slowest operations of the victim: up to five
a run, each with a part of the culprit of at least 60 %. Bounds in brackets are those of Wilson, 95 %.

*Right*: the culprit (process, thread, device, group or peer) is named. *Near*: one that acts for it is, such
as the journal's thread for who fills the journal. *Outside*: a process that has nothing to do with the run,
which may be true on a machine that does other things too; not counted. *Silent*: nobody is named.
"""


def write(results, catalogue):
    done = [result for result in results if "skipped" not in result]
    ops = ops_of(done)
    loads = sorted(result["load"][0] for result in done)
    head = HEAD.format(
        runs=len(done),
        faults=len(by_scenario(done)),
        ops=len(ops),
        kernel=platform.release().partition("-")[0],
        cpus=__import__("os").cpu_count(),
        load=f"{loads[0]:.1f} to {loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}",
    )
    text = [head, "## In short\n", *listed(tables.summary(done))]
    text += ["\n## Fault by fault\n", *confusion(done)]
    text += ["\n## Beside simpler methods\n", *beside(done)]
    text += ["\n## With events left out\n", *ablated(done)]
    text += ["\n## Of the whole recording, without a question\n", *overall(done)]
    text += ["\n## What is said wrong\n", *mistakes(done)]
    text += ["\n## Not made\n", *not_made(results, catalogue)]
    OUTPUT.write_text("\n".join(text) + "\n")
    typos = subprocess.run(
        ["git", "-C", str(ROOT), "diff", "--stat", "--", str(OUTPUT)], capture_output=True
    )
    print(typos.stdout.decode().strip() or f"{pathlib.Path(OUTPUT).name} is as it was")


def listed(lines):
    return [f"- {' '.join(line.split())}" for line in lines]


def confusion(done):
    yield "| | fault | right | near | wrong | outside | silent | high | mechanism | object | precision | recall |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name, results in by_scenario(done).items():
        if is_null(results[0]):
            continue
        ops = [op for _, op in ops_of(results)]
        found = counts(ops)
        known = lambda key: [op[key] for op in ops if op.get(key) is not None]  # noqa: E731
        middle = lambda key: (
            f"{sorted(known(key))[len(known(key)) // 2]:.2f}" if known(key) else "–"
        )  # noqa: E731
        cells = [str(found[verdict] or "") for verdict in tables.VERDICTS]
        cells.append(str(sum(op["confidence"] == "high" for op in ops)))
        cells += [brief(sum(known(key)), len(known(key))) for key in ("mechanism", "object")]
        cells += [middle("precision"), middle("recall")]
        yield f"| {results[0]['number']} | {name} | {' | '.join(cells)} |"
    yield ""
    yield "Without a fault nobody is guilty: whoever blames another than the victim is wrong if sure of it."
    yield ""
    yield "| | load | nobody, or itself | not sure | sure, and wrong | outside |"
    yield "|---|---|---|---|---|---|"
    for name, results in by_scenario(done).items():
        if not is_null(results[0]):
            continue
        ops = [op for _, op in ops_of(results)]
        quiet = sum(op["verdict"] in ("silent", "own") for op in ops)
        wrong = sum(tables.is_wrong_claim(op) for op in ops)
        outside = sum(op["verdict"] == "outside" for op in ops)
        rest = len(ops) - quiet - wrong - outside
        yield f"| {results[0]['number']} | {name} | {quiet} | {rest or ''} | {wrong or ''} | {outside or ''} |"


def beside(done):
    yield "Right answers of all, then wrong ones. The methods are made from the same tables"
    yield "(`benches/eval/explaining/baselines.py`): `syscalls` is the longest call that overlaps (as iolatencytop"
    yield "shows it), `block` the issuer of the slowest request (biosnoop), `offwake` who woke the victim most"
    yield "(offwaketime), `graph` the critical path of an execution graph (Trace Compass), `flatten` the same"
    yield "where interrupts have no waker (Perfetto)."
    yield ""
    yield f"| | fault | explain | {' | '.join(BASELINES)} |"
    yield f"|---|---|---|{'---|' * len(BASELINES)}"
    wins, totals = [], {}
    for name, results in by_scenario(done).items():
        ops = [op for _, op in ops_of(results) if "baselines" in op]
        if not ops or is_null(results[0]):
            continue
        cells, rates = [], {}
        for key in [None, *BASELINES]:
            found = counts(ops, key)
            rates[key] = found["right"] / len(ops)
            cells.append(f"{found['right']}, {found['wrong']} of {len(ops)}")
            total = totals.setdefault(key, [0, 0, 0])
            total[0] += found["right"]
            total[1] += found["wrong"]
            total[2] += len(ops)
        better = [key for key in BASELINES if rates[key] > rates[None]]
        if better:
            wins.append(f"- **{name}**: {', '.join(better)}")
        yield f"| {results[0]['number']} | {name} | {' | '.join(cells)} |"
    yield f"| | all | {' | '.join(f'{right}, {wrong} of {of}' for right, wrong, of in totals.values())} |"
    yield ""
    yield (
        "Faults where a simpler method is right more often:"
        if wins
        else "None of them is right more often."
    )
    if wins:
        yield ""
        yield from wins


def ablated(done):
    done = [result for result in done if set(ABLATIONS) <= set(result["asked"])]
    yield "The same recordings, made again from their spools without some classes of events, or with a share of"
    yield f"all events lost: {len(done)} runs. What is said may get weaker; wrong claims must not get more."
    yield ""
    yield "| left out | right | near | wrong | outside | silent | high and wrong | nobody blamed without a fault |"
    yield "|---|---|---|---|---|---|---|---|"
    for variant in ABLATIONS:
        of_variant = ops_of(done, variant)
        if not of_variant:
            continue
        ops = [op for result, op in of_variant if not is_null(result)]
        nulls = [op for result, op in of_variant if is_null(result)]
        found = counts(ops)
        cells = [str(found[verdict]) for verdict in tables.VERDICTS]
        cells.append(tables.wrong_claims(done, variant))
        cells.append(brief(sum(tables.is_abstention(op) for op in nulls), len(nulls)))
        yield f"| {variant} | {' | '.join(cells)} |"


def overall(done):
    yield "`whyslow explain REC` alone: whether any of its stories names a culprit, and which findings there are."
    yield ""
    yield "| | fault | a story names it | sure and wrong | findings wanted, and found | others |"
    yield "|---|---|---|---|---|---|"
    for name, results in by_scenario(done).items():
        answers = [result["asked"]["whole"]["overall"] for result in results]
        answers = [one for one in answers if "failed" not in one]
        named = sum(any(story["verdict"] == "right" for story in one["stories"]) for one in answers)
        wrong = sum(
            story["verdict"] == "wrong" and story["confidence"] == "high"
            for one in answers
            for story in one["stories"]
        )
        wanted = sorted({kind for one in answers for kind in one["wanted"]})
        found = sum(bool(one["found"]) for one in answers)
        others = sorted({kind for one in answers for kind in one["findings"]} - set(wanted))
        says = f"{', '.join(wanted)}: {brief(found, len(answers))}" if wanted else ""
        names = brief(named, len(answers)) if results[0]["culprits"] else ""
        yield f"| {results[0]['number']} | {name} | {names} | {wrong or ''} | {says} | {', '.join(others)} |"


def mistakes(done):
    """One example of each: the surest and longest."""
    none = True
    for name, results in by_scenario(done).items():
        bad = [
            (r, op)
            for r, op in ops_of(results)
            if op["verdict"] in ("wrong", "silent") and not is_null(r)
        ]
        bad += [(r, op) for r, op in ops_of(results) if is_null(r) and not tables.is_abstention(op)]
        if not bad:
            continue
        none = False
        result, op = max(
            bad, key=lambda pair: (pair[1]["confidence"] == "high", pair[1]["took_ms"])
        )
        true = ", ".join(
            f"{ms:.1f} ms {guilty['name']} ({guilty['mechanisms'][0]})"
            for guilty, ms in zip(result["culprits"], op["truth_ms"])
            if ms > 0
        )
        said = str(op.get("said", "")).replace("|", "\\|")
        yield f"- **{name}**, {len(bad)} times, such as seed {result['seed']}: said ({op['confidence']}): “{said}”. True: {true or 'no fault'}."
    if none:
        yield "Nothing."


def not_made(results, catalogue):
    for what, why in catalogue["missing"].items():
        yield f"- {what}: {why}."
    for result in results:
        if "skipped" in result:
            yield f"- {result['number']} {result['scenario']}: {result['skipped']}."
