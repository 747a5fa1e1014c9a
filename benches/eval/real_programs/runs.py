"""One run of a scenario: records it with the default topics, imports the spool, and explains it.

A run has a folder with `truth.json`, `run.spool`, the logs, and finally `result.json`.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

from explaining import baselines, runs
from explaining.recording import Recording
from explaining.runs import FailedError, candidates, chosen, seconds_text

from . import score
from .baselines import retransmits

REAL_FAULT = runs.ROOT / "workloads/real_fault.py"
# Debian's Python: the drivers of the databases are its packages.
PYTHON = "/usr/bin/python3"
RECORD_SECONDS = 200
# Share of an operation that one system call or request must cover to stand for it.
COVERS = 0.6
# Queries about one operation, in the order of the tables; `slow` is one query about a run.
WAYS = ("window", "call", "request", "served")


def catalogue(half):
    words = ["--half", half] if half else []
    command = [PYTHON, str(REAL_FAULT), "--list", *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


class RealRunner(runs.Runner):
    # The whole machine is recorded.
    explain_s = 120

    def __init__(self, whyslow, folder, patience_s):
        super().__init__(whyslow, folder, ["whole"])
        self.patience_s = patience_s

    def result(self, name, seed, kind, again):
        folder = self.folder / f"{name}-{seed}"
        done = folder / "result.json"
        if done.exists() and not again:
            return json.loads(done.read_text())
        head = {"scenario": name, "seed": seed, "half": kind["half"], "about": kind["about"]}
        try:
            truth = self.made(folder, name, seed, kind)
            if "skipped" in truth:
                # Not stored: what is missing may be installed by then.
                return {**head, "skipped": truth["skipped"]}
            head.update(load=truth["load"], culprits=truth["culprits"], faults=len(truth["faults"]))
            head.update(self.evaluated(folder, truth))
        except FailedError as error:
            # Not stored either, so that the next run retries it.
            return {**head, "skipped": f"failed: {error}"}
        (folder / "result.tmp").write_text(json.dumps(head, indent=1))
        os.replace(folder / "result.tmp", done)
        return head

    def recorded(self, folder, name, seed, kind):
        """The truth; the spool is in the same folder."""
        path = folder / "truth.json"
        if path.exists():
            return json.loads(path.read_text())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        raw = folder / "truth.raw"
        runs.wait_for_calm(self.patience_s)
        before = os.getloadavg()[0]
        command = [PYTHON, str(REAL_FAULT), name, "--half", kind["half"], "--seed", str(seed)]
        command += ["--record", str(folder / "run.wsl"), "--whyslow", self.whyslow, "-o", str(raw)]
        with (folder / "output.txt").open("wb") as output:
            try:
                done = subprocess.run(
                    command, stdout=output, stderr=output, check=False, timeout=RECORD_SECONDS
                )
            except subprocess.TimeoutExpired as error:
                raise FailedError(f"{name} did not end within {RECORD_SECONDS} s") from error
        if not raw.exists():
            text = (folder / "output.txt").read_text(errors="replace")[-600:]
            raise FailedError(f"{name} was not recorded ({done.returncode}): {text}")
        truth = json.loads(raw.read_text())
        truth["load"] = [round(before, 2), round(os.getloadavg()[0], 2)]
        raw.unlink()
        if "skipped" in truth:
            return truth
        (folder / "run.wsl.spool").rename(folder / "run.spool")
        path.write_text(json.dumps(truth))
        return truth

    def evaluated(self, folder, truth):
        recording = folder / "run.wsl"
        begin = time.monotonic()
        command = [self.whyslow, "import", "-q", str(folder / "run.spool"), "-o", str(recording)]
        done = subprocess.run([*command, "--force"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise FailedError(f"cannot import the spool: {done.stderr[-400:]}")
        import_s = round(time.monotonic() - begin, 3)
        tables = Recording(recording, truth["pid"])
        # All findings, because those about other work of the machine are left out.
        answer, took = self.explained(recording, "-n", "0")
        found = {"import_s": import_s, "rows": tables.rows, "ops": [], "explain_ms": [took]}
        found["alone"] = score.of_recording(answer, truth, tables)
        # The truth of a load without a fault is that nothing is slow: no operation is to be explained.
        ops = chosen(truth, tables) if truth["culprits"] else []
        for op in ops:
            found["ops"].append(self.of_operation(recording, op, truth, tables, found))
        if ops:
            slow = self.of_slow_calls(recording, ops, truth, tables, found)
            if slow:
                found["slow"] = slow
        shutil.rmtree(recording)
        return found

    def answered(self, recording, found, *words):
        answer, took = self.explained(recording, *words)
        found["explain_ms"].append(took)
        return answer

    def of_operation(self, recording, op, truth, tables, found):
        took_ms = (op["end_ns"] - op["begin_ns"]) / 1e6
        scored = {"call": op["call"], "took_ms": round(took_ms, 3), "truth_ms": op["true_blame_ms"]}
        scored.update(tid=op["tid"], begin_ns=op["begin_ns"], end_ns=op["end_ns"])
        scored["culprit"] = truth["culprits"].index(score.score.guilty_of(op, truth))
        window = f"{seconds_text(op['begin_ns'])}..{seconds_text(op['end_ns'])}"
        ways = {"window": ["-w", window, "-t", str(op["tid"])]}
        if (call := call_of(tables, op)) is not None:
            ways["call"] = ["-w", f"op:{call[0]}"]
        if (request := request_of(tables, op)) is not None:
            ways["request"] = ["--request", str(request)]
            if (served := served_of(tables, request)) is not None:
                ways["served"] = ["--request", str(served)]
        scored["answers"] = {
            way: score.of_answer(self.answered(recording, found, *words), op, truth, tables)
            for way, words in ways.items()
        }
        found_by = {**baselines.answers(tables, op), "retransmits": retransmits(tables, op)}
        scored["baselines"] = {
            name: score.of_baseline(culprit, op, truth, tables)
            for name, culprit in found_by.items()
        }
        return scored

    def of_slow_calls(self, recording, ops, truth, tables, found):
        """Explains all slow calls of the kind in which the victim was slow, as a user would."""
        calls = [(call_of(tables, op), op) for op in ops]
        calls = [(call, op) for call, op in calls if call is not None]
        if not calls:
            return None
        names = [call[1] for call, _ in calls]
        name = max(sorted(set(names)), key=names.count)
        of_name = [(call, op) for call, op in calls if call[1] == name]
        limit = int(statistics.median(call[2] for call, _ in of_name) // 2)
        # The duration in a form that the command reads: whole microseconds.
        words = ["--slow", f"{name}>{limit // 1000}us", "-t", str(of_name[0][1]["tid"])]
        answer = self.answered(recording, found, *words)
        findings = answer.get("findings") or []
        op = operation_of(findings[0], truth, ops) if findings else of_name[0][1]
        return {"words": words, **score.of_answer(answer, op, truth, tables)}


def call_of(tables, op):
    """(id, name, ns) of the system call of the victim that covers most of an operation."""
    if not tables.has("syscall"):
        return None
    row = tables.db.execute(
        """
        SELECT id, name, dur FROM syscall
        WHERE tid = $tid AND ts < $end AND ts_end > $begin AND dur IS NOT NULL
        ORDER BY least(ts_end, $end) - greatest(ts, $begin) DESC, id LIMIT 1
        """,
        {"begin": op["begin_ns"], "end": op["end_ns"], "tid": op["tid"]},
    ).fetchone()
    enough = row is not None and row[2] >= COVERS * (op["end_ns"] - op["begin_ns"])
    return row if enough else None


def request_of(tables, op):
    """Id of the request that an operation is, as seen at the victim's own socket."""
    if "request" not in tables.names:
        return None
    return tables.one(
        """
        SELECT id FROM request
        WHERE tid = $3 AND ts < $2 AND ts_end > $1 AND dur <= 1.5 * ($2 - $1)
          AND least(ts_end, $2) - greatest(ts, $1) >= $4 * ($2 - $1)
        ORDER BY least(ts_end, $2) - greatest(ts, $1) DESC, id LIMIT 1
        """,
        op["begin_ns"],
        op["end_ns"],
        op["tid"],
        COVERS,
    )


def served_of(tables, request):
    """Id of the same request as seen by the server: on the same connection, at the same time."""
    return tables.one(
        """
        SELECT s.id FROM request c JOIN request s
          ON s.role <> 'client' AND (s.id = c.server_request OR (s.local = c.peer AND s.peer = c.local))
        WHERE c.id = $1 AND s.ts < c.ts_end AND s.ts_end > c.ts AND s.dur >= $2 * c.dur
        ORDER BY least(s.ts_end, c.ts_end) - greatest(s.ts, c.ts) DESC, s.id LIMIT 1
        """,
        request,
        COVERS,
    )


def operation_of(finding, truth, ops):
    """The operation of the truth that a finding is about: the one that it overlaps most."""
    target = finding["target"]

    def shared(op):
        return min(op["end_ns"], target["end_ns"]) - max(op["begin_ns"], target["begin_ns"])

    same = [op for op in candidates(truth) if op["tid"] == target["actor"]["tid"]]
    return max(same or ops, key=lambda op: (shared(op), -op["begin_ns"]))


def folder_of(given):
    cache = os.environ.get("WHYSLOW_CACHE", str(pathlib.Path.home() / ".cache/whyslow-dev"))
    return given or pathlib.Path(cache) / "eval-real"
