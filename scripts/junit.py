"""Summarizes JUnit files of cargo-nextest: counts, skips with their reasons, repeats, failures.

    python3 scripts/junit.py junit.xml

A test that cannot run prints `skipped: REASON` and passes; this script counts it as skipped.
"""

import collections
import sys
import xml.etree.ElementTree as ElementTree

MARK = "skipped: "
# Maximum characters of a failed test's output, from its end, which has the assertion.
OUTPUT_MAX = 6000


def outputs(case):
    return "\n".join(part.text or "" for part in case if part.tag in ("system-out", "system-err"))


def main():
    (path,) = sys.argv[1:]
    passed = failed = 0
    skips = collections.Counter()
    skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        bad = [part for part in case if part.tag in ("failure", "error")]
        repeats = [part for part in case if part.tag.startswith(("flakyFailure", "flakyError"))]
        if bad:
            failed += 1
            print(f"FAILED {test}: {bad[0].get('type') or ''}\n{outputs(case)[-OUTPUT_MAX:]}\n")
            continue
        if repeats:
            print(f"flaky: {test} passed on attempt {len(repeats) + 1}")
        reasons = [line[len(MARK) :] for line in outputs(case).split("\n") if line.startswith(MARK)]
        skips.update(reasons)
        if reasons:
            skipped += 1
        else:
            passed += 1
    for reason, count in sorted(skips.items()):
        print(f"{count:4} skipped: {reason}")
    print(f"tests: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed + skipped == 0 else 0


sys.exit(main())
