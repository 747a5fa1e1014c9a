"""A skip passes unless the missing need is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import is_required

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("need", "names", "expected"),
    [
        ("spark", "", False),
        ("spark", "live,data", False),
        ("spark", "live, spark", True),
        ("spark", "all", True),
        ("machine", "all", False),
        ("root", "all,root", True),
    ],
)
def test_what_is_named_is_required(need: str, names: str, expected: bool) -> None:
    assert is_required(need, names) is expected


TESTS = """
import pytest

def test_lacks(): pytest.skip("no Java [spark]")
def test_does_not_apply(): pytest.skip("no calls in it")
@pytest.mark.xfail
def test_known(): assert False
"""
MODULE = """
import pytest

pytest.importorskip("no_such", reason="no_such is not installed [python]")
"""


@pytest.mark.parametrize(
    ("required", "summary", "reasons"),
    [
        (None, "3 skipped, 1 xfailed", []),
        ("data", "3 skipped, 1 xfailed", []),
        ("spark", "1 failed, 2 skipped, 1 xfailed", ["no Java [spark]"]),
        ("python", "1 error", ["no_such is not installed [python]"]),
    ],
)
def test_a_required_skip_fails(
    tmp_path: Path, required: str | None, summary: str, reasons: list[str]
) -> None:
    hooks = "from needs import pytest_make_collect_report, pytest_runtest_makereport\n"
    (tmp_path / "conftest.py").write_text(hooks)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    environment.pop("WHYSLOW_REQUIRE", None)
    if required:
        environment["WHYSLOW_REQUIRE"] = required
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull]
    words += ["--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert summary in done.stdout, done.stdout
    assert (done.returncode == 0) is (not reasons)
    for reason in reasons:
        assert f"required by WHYSLOW_REQUIRE but skipped: {reason}" in done.stdout
