"""Skips that `WHYSLOW_REQUIRE` forbids: a comma-separated list of needs, or `all`.

The reason of a skip ends with its need: `pandas is not installed [python]`; a reason without a need
is always allowed. The names are those of `Need` in `crates/whyslow-testkit`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

#: Needs that cannot be installed: `all` does not include them.
NOT_INSTALLABLE = {"machine", "root", "not_root"}


def is_required(need: str, names: str) -> bool:
    required = {name.strip() for name in names.split(",")}
    return need in required or ("all" in required and need not in NOT_INSTALLABLE)


def check(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip into a failure if its need is required."""
    if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    need = re.search(r"\[(\w+)\]$", reason)
    if need and is_required(need[1], os.environ.get("WHYSLOW_REQUIRE", "")):
        report.outcome = "failed"
        text = reason.removeprefix("Skipped: ")
        report.longrepr = f"{path}:{line}: required by WHYSLOW_REQUIRE but skipped: {text}"


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
