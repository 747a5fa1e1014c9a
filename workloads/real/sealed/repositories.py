"""git: clones of a repository on the same machine, and a pack on a disk that becomes slow."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kernel import EXT4
from real.sealed.kit import Served
from real.sealed.quiet_services import Quiet


def git_environment(home: Path) -> dict[str, str]:
    """Without settings of the user and the machine."""
    own = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        own[f"GIT_{role}_NAME"] = own[f"GIT_{role}_EMAIL"] = "ci@localhost"
    return {**os.environ, **own}


def git(home: Path, *words: Any) -> None:
    subprocess.run(
        ["git", *words],
        env=git_environment(home),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def make_repository(folder: Path) -> None:
    """Some commits, each with a file of another size."""
    folder.mkdir()
    there = (folder.parent, "-C", folder)
    git(*there, "init", "-q")
    for number in range(12):
        (folder / f"part{number}").write_text(os.urandom(20_000 * (number + 1)).hex())
        git(*there, "add", ".")
        git(*there, "commit", "-qm", f"Add part {number}")
        git(*there, "tag", f"v{number}")
    git(*there, "gc", "-q")


class GitClones(Quiet):
    name = "null_git_clones"
    about = "a build job lists and clones a repository on the same machine, with pauses"
    packages: ClassVar[dict[str, str]] = {"git": "git"}
    call = "wait4"

    def setup(self) -> None:
        folder = self.log("repositories")
        folder.mkdir()
        make_repository(folder / "shop")
        self.clients = [self.client("ci", build, folder, self.plan.seed)]


def build(plan: WaitingPlan, folder: Path, seed: int) -> dict[str, Any]:
    # By its URL, git does not copy the files but starts its own server.
    url, dice = f"file://{folder}/shop", random.Random(seed)
    ways = [["ls-remote", "-q"], ["clone", "-q", "--depth", "1"], ["clone", "-q", "--mirror"]]
    plan.wait()
    number = 0

    def once() -> None:
        nonlocal number
        number += 1
        words = ways[dice.choice([0, 0, 1, 2])]
        git(folder, *words, url, *([] if "ls-remote" in words else [folder / f"build{number}"]))

    return repeat(plan, once, 0.15)


class GitPack(Served):
    name = "git_cold_pack"
    about = "a build waits for git, which reads its pack from a disk that became slow"
    packages: ClassVar[dict[str, str]] = {"git": "git"}

    def setup(self) -> None:
        self.disk = self.lab.disk(64)
        folder = self.lab.mount(self.disk, "ext4", *EXT4)
        make_repository(folder / "shop")
        run("sync", "-f", folder)
        self.read_us = self.plan.whole(15, 40) * 1000
        self.victim = self.client("build", read_part, folder / "shop", self.plan.seed)

    def begin_fault(self) -> None:
        self.disk.set(read_us=self.read_us)

    def end_fault(self) -> None:
        self.disk.set(read_us=0)

    def truth(self, faults: list[Span]) -> Truth:
        culprit = Culprit("device", self.disk.name, ["block_service", "page_fault_io", "io_wait"])
        culprit.middlemen, culprit.near = ["git"], ["slowfs", "kworker/*"]
        culprit.objects = [Thing("device", self.disk.name), Thing("any", ".pack")]
        return self.slowed(self.victim.result(), "wait4", faults, culprit)


def read_part(plan: WaitingPlan, folder: Path, seed: int) -> dict[str, Any]:
    """Reads one file of a commit, each time from the disk."""
    dice = random.Random(seed)
    packs = [os.open(file, os.O_RDONLY) for file in folder.glob(".git/objects/pack/pack-*")]
    plan.wait()
    spans = []
    while not plan.is_over():
        for pack in packs:
            os.posix_fadvise(pack, 0, 0, os.POSIX_FADV_DONTNEED)
        part = dice.randint(0, 3)
        begin = time.monotonic_ns()
        git(folder.parent, "-C", folder, "cat-file", "blob", f"v11:part{part}")
        spans.append((begin, time.monotonic_ns()))
        time.sleep(0.03)
    return {**myself(), "spans": spans}
