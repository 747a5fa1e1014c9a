"""Skips that `WHYSLOW_REQUIRE` does not allow: names of needs with commas between, or `all`.

A reason to skip ends with its need, `pandas is not installed [python]`; one without a need is never
required. The names are those of `Need` in `crates/whyslow-testkit`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

#: What no installation brings: `all` leaves them out.
NOT_TO_BE_HAD = {"machine", "root", "not_root"}


def is_required(need: str, names: str) -> bool:
    required = {name.strip() for name in names.split(",")}
    return need in required or ("all" in required and need not in NOT_TO_BE_HAD)


def check(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a failure of a skip whose need is required."""
    if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    need = re.search(r"\[(\w+)\]$", reason)
    if need and is_required(need[1], os.environ.get("WHYSLOW_REQUIRE", "")):
        report.outcome = "failed"
        said = reason.removeprefix("Skipped: ")
        report.longrepr = f"{path}:{line}: required by WHYSLOW_REQUIRE but skipped: {said}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    check(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    check(report)
    return report
