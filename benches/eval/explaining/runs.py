"""One run: injects and records a fault, imports the spool, and explains the recording.

A run has a folder with `truth.json`, `run.spool`, and finally `result.json`.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

from . import baselines, score
from .recording import Recording

ROOT = pathlib.Path(__file__).resolve().parents[3]
FAULT = ROOT / "workloads/fault.py"
# Explained operations of a run: the slowest, and a sample of the other slow ones.
SLOWEST, OTHERS = 3, 2
# Shorter operations, and those slow for another reason, are not explained.
SLOW_MS, GUILTY_SHARE = 4.0, 0.6
SKIPPED = 77
# Options of the import, which drop classes of events or a share of all events.
ABLATIONS = {
    "whole": [],
    "no stacks": ["--leave-out", "stacks"],
    "no wakeups": ["--leave-out", "wakeup"],
    "no sched": ["--leave-out", "sched,wakeup"],
    "no block": ["--leave-out", "block"],
    "no syscalls": ["--leave-out", "syscalls"],
    "no locks": ["--leave-out", "locks"],
    "no irq": ["--leave-out", "irq"],
    "no net": ["--leave-out", "net"],
    "1 % lost": ["--lose", "1%"],
    "10 % lost": ["--lose", "10%"],
}
# Variants of a quick run.
FEW = ("whole", "no sched", "no wakeups", "10 % lost")
RETRIES = 2
# Before a run, wait for a second with this idle share, at most PATIENCE_S.
CALM_S, IDLE, PATIENCE_S = 1, 0.8, 90
# Maximum share of processes outside of the run in an operation whose truth is its excess.
STRANGERS = 0.2


def catalogue():
    done = subprocess.run([sys.executable, FAULT, "--list"], check=True, capture_output=True)
    return json.loads(done.stdout)


def cpu_times():
    """Time of all CPUs available to a thread that wakes up, and total time.

    The first includes the time of niced processes, which are preempted at once.
    """
    times = [
        int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    ]
    _, nice, _, idle, iowait = times[:5]
    return nice + idle + iowait, sum(times)


def wait_for_calm(patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        idle, total = cpu_times()
        time.sleep(CALM_S)
        idle, total = (now - before for now, before in zip(cpu_times(), (idle, total)))
        if idle >= IDLE * total:
            return


def seconds_text(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d}"


class FailedError(Exception):
    """A fault could not be injected or recorded, for a reason other than the machine."""


class Runner:
    # Timeout of one `explain`.
    explain_s = 60

    def __init__(self, whyslow, folder, variants):
        self.whyslow = str(whyslow)
        self.folder = folder
        self.ablations = {name: ABLATIONS[name] for name in variants}

    def result(self, name, seed, kind, again):
        folder = self.folder / f"{name}-{seed}"
        done = folder / "result.json"
        if done.exists() and not again:
            return json.loads(done.read_text())
        try:
            truth = self.made(folder, name, seed, kind)
        except FailedError as error:
            # Not stored, so that the next run retries it.
            why = f"failed: {error}"
            return {"scenario": name, "number": kind["number"], "seed": seed, "skipped": why}
        head = {
            key: truth[key]
            for key in ("scenario", "number", "seed", "load", "skipped")
            if key in truth
        }
        if "skipped" not in truth:
            head["culprits"] = truth["culprits"]
            head["notes"] = truth["notes"]
            head["evaluated"] = self.evaluated(folder, truth)
        text = json.dumps(head, indent=1)
        (folder / "result.tmp").write_text(text)
        os.replace(folder / "result.tmp", done)
        return head

    def made(self, folder, name, seed, kind):
        """The truth of a run in which the victim was slow; records again if it was not."""
        for attempt in range(RETRIES):
            truth = self.recorded(folder, name, seed, kind)
            if "skipped" in truth or candidates(truth) or attempt == RETRIES - 1:
                return truth
            # The machine was busy, or the victim was not affected by chance.
            shutil.rmtree(folder)
        raise AssertionError("the last attempt returns")

    def record(self, name, seed, kind):
        """Injects and records a fault; `result` explains it later. Returns the reason of a failure."""
        try:
            self.made(self.folder / f"{name}-{seed}", name, seed, kind)
        except FailedError as error:
            return str(error)
        return None

    def recorded(self, folder, name, seed, kind):
        """The truth; the spool is in the same folder."""
        path = folder / "truth.json"
        if path.exists():
            return json.loads(path.read_text())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        raw = folder / "truth.raw"
        wait_for_calm()
        before = os.getloadavg()[0]
        command = [self.whyslow, "record", "-q", "-o", str(folder / "run.wsl"), "--no-import"]
        command += ["--what", kind["what"], "--stacks", kind["stacks"], "--"]
        command += [sys.executable, str(FAULT), name, "--seed", str(seed), "-o", str(raw)]
        with (folder / "output.txt").open("wb") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=False, timeout=120)
        if not raw.exists():
            text = (folder / "output.txt").read_text(errors="replace")[-600:]
            raise FailedError(f"{name} was not recorded ({done.returncode}): {text}")
        truth = json.loads(raw.read_text())
        truth["load"] = [round(before, 2), round(os.getloadavg()[0], 2)]
        (folder / "run.wsl.spool").rename(folder / "run.spool")
        path.write_text(json.dumps(truth))
        raw.unlink()
        return truth

    def evaluated(self, folder, truth):
        found, ops = {}, None
        for variant, options in self.ablations.items():
            recording = folder / "run.wsl"
            begin = time.monotonic()
            command = [
                self.whyslow,
                "import",
                "-q",
                str(folder / "run.spool"),
                "-o",
                str(recording),
            ]
            done = subprocess.run([*command, "--force", *options], capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{folder.name}, {variant}: {done.stderr[-400:]}")
            took = time.monotonic() - begin
            tables = Recording(recording, truth["pid"])
            # The same operations in all variants.
            ops = ops if ops is not None else chosen(truth, tables)
            found[variant] = self.of_recording(tables, truth, ops, variant == "whole")
            found[variant]["import_s"] = round(took, 3)
            shutil.rmtree(recording)
        return found

    def of_recording(self, tables, truth, chosen_ops, is_whole):
        path, ops = tables.path, []
        for op in chosen_ops:
            window = f"{seconds_text(op['begin_ns'])}..{seconds_text(op['end_ns'])}"
            answer, took = self.explained(path, "-w", window, "-t", str(op["tid"]))
            scored = score.of_operation(answer, op, truth, tables)
            scored["explain_ms"] = took
            if is_whole:
                scored["baselines"] = {
                    name: score.of_name(culprit, op, truth, tables)
                    for name, culprit in baselines.answers(tables, op).items()
                }
            ops.append(scored)
        found = {"ops": ops}
        if is_whole:
            answer, took = self.explained(path)
            found["overall"] = score.of_recording(answer, truth, tables)
            found["overall"]["explain_ms"] = took
            found["rows"] = tables.rows
        return found

    def explained(self, path, *words):
        begin = time.monotonic()
        command = [self.whyslow, "explain", str(path), *words, "--format", "json", "-q"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.explain_s)
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {self.explain_s} s"}, self.explain_s * 1000
        took = round((time.monotonic() - begin) * 1000, 1)
        if done.returncode != 0:
            return {"failed": done.stderr.strip()[-300:]}, took
        return json.loads(done.stdout), took


def candidates(truth):
    """Operations slowed by the injected fault, slowest first; without a fault all operations."""
    ops = sorted(truth["ops"], key=lambda op: op["begin_ns"] - op["end_ns"])
    return [op for op in ops if is_victim(op)] if truth["culprits"] else ops


def chosen(truth, tables):
    """Operations to explain; without a fault only the slowest."""
    ops = candidates(truth)
    if truth["needs_quiet"]:
        ops = [op for op in ops[:200] if tables.strangers(op) <= STRANGERS]
    rest = ops[SLOWEST:]
    if not truth["culprits"]:
        return ops[: SLOWEST + OTHERS]
    return ops[:SLOWEST] + random.Random(truth["seed"]).sample(rest, min(OTHERS, len(rest)))


def is_victim(op):
    took_ms = (op["end_ns"] - op["begin_ns"]) / 1e6
    return took_ms >= SLOW_MS and sum(op["true_blame_ms"]) >= GUILTY_SHARE * took_ms
