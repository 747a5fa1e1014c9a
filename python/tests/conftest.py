"""Recordings shared by the tests, created by the program, in an isolated environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from needs import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - hooks

import whyslow
from whyslow import program

ROOT = Path(__file__).resolve().parents[2]
WEB_TRACE = ROOT / "fixtures" / "web-incident" / "trace.tar.zst"

#: A machine at -05:30 with hostile names, 7002 lost events, and one call without an end.
EVENTS = r"""whyslow-text 1
meta hostname=web1
meta trace_creation_datetime=20150115T114837-0530
1421342317.200000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=sync
1421342317.300000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=openat path="/var/lib/php5/sess_1" flags=66
1421342317.400000000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=openat ret=13
1421342317.410000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=write fd=13 count=100
1421342317.410050000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=write ret=100
1421342317.500000000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=sync ret=0
1421342317.600000000 [1] (tid=20 pid=20 comm="-c o'm\"m") syscall_enter name=openat path="/tmp/\x1b[2J\x1b]0;owned\x07" flags=0
1421342317.600010000 [1] (tid=20 pid=20 comm="-c o'm\"m") syscall_exit name=openat ret=14
1421342317.700000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=openat path="=cmd|' /C calc'!A0,\xf0\x9f\x92\xa5\xff" flags=0
1421342317.700020000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=openat ret=-2
1421342317.800000000 [0] lost kind=events until=1421342317.900000000 count=7002 stream=ch0
1421342318.000000000 [0] (tid=10 pid=10 comm=sync) block_rq_issue dev=8:0 sector=1000 sectors=8 rwbs=WS bytes=4096
1421342318.004000000 [0] block_rq_complete dev=8:0 sector=1000 sectors=8 rwbs=WS error=0
1421342318.100000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=read fd=13 count=10
1421342319.000000001 [0] (tid=10 pid=10 comm=sync) syscall_enter name=nanosleep
"""  # noqa: E501 - trace lines are long


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """User state of programs goes to a folder of the tests."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("LC_ALL", "C.UTF-8")
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        yield


@pytest.fixture(scope="session")
def binary() -> str:
    try:
        return program.find()
    except whyslow.ProgramError as error:
        pytest.skip(f"program not found: {error.message} [tools]")


@pytest.fixture(scope="session")
def web_path(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled incident: 316,175 events, 14.8 s."""
    output = tmp_path_factory.mktemp("web") / "web.wsl"
    whyslow.import_trace(WEB_TRACE, output=output).close()
    return output


@pytest.fixture(scope="session")
def web(web_path: Path) -> Iterator[whyslow.Recording]:
    with whyslow.open(web_path) as recording:
        yield recording


@pytest.fixture
def make(binary: str, tmp_path: Path) -> Callable[..., Path]:
    """Creates a recording from events as text; returns its path."""

    def make(name: str | Path = "t.wsl", events: str = EVENTS) -> Path:
        trace = tmp_path / "trace.txt"
        trace.write_text(events)
        output = tmp_path / name
        whyslow.import_trace(trace, output=output).close()
        return output

    return make


@pytest.fixture
def lossy(make: Callable[..., Path]) -> Iterator[whyslow.Recording]:
    with whyslow.open(make()) as recording:
        yield recording


def cli(binary: str, *words: str | os.PathLike[str]) -> subprocess.CompletedProcess[bytes]:
    """Runs the program as a user would."""
    return subprocess.run([binary, *words], capture_output=True, stdin=subprocess.DEVNULL)


def cli_json(binary: str, *words: str | os.PathLike[str]) -> Any:
    done = cli(binary, *words, "--json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
