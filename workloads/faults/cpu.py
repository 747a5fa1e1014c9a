"""CPU faults: a real-time spinner, a quota, a fork storm, a periodic job, a debugger."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from faults.plan import Plan, act, excess, overlap, sleep_until, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import Lab, UnavailableError, needs
from throttled import Group


def cpu_of_victim() -> int:
    """The last CPU; the watchdog and the recorder need another one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise UnavailableError("needs two CPUs: the watchdog needs its own")
    return cpus[-1]


def truth_of(
    plan: Plan, faults: list[tuple[int, int]], culprit: Culprit, victim: dict[str, Any], pid: int
) -> Truth:
    """The truth for a victim that only computes: the time beyond its own."""
    truth = Truth(plan, faults, [culprit])
    thread = {**victim["victim"], "pid": pid}
    spans = [(begin, end) for begin, end in victim["victim"]["spans"]]
    own = undisturbed(spans, faults)
    for span in spans:
        truth.add(thread, "", span, [excess(span, faults, own)])
    truth.needs_quiet = True
    truth.notes["own_ns"] = own
    return truth


def rt_hog(lab: Lab, plan: Plan) -> Truth:
    cpu = cpu_of_victim()
    burst = plan.whole(120, 350) * 1000
    plan.begin()
    victim = act(lab, plan, "work", f"cpu={cpu}", "work_us=4000", "pause_us=6000")
    words = [f"cpu={cpu}", "rt=1", f"burst_us={burst}", f"pause_us={plan.whole(80, 200) * 1000}"]
    spinner = act(lab, plan, "spin", *words)
    spins = spinner.result()["spins0"]
    culprit = Culprit("process", "spinner", ["cpu_runqueue"], spinner.pid, spins["tid"])
    culprit.objects = [Thing("cpu", str(cpu))]
    faults = [(begin, end) for begin, end in spins["spans"]]
    truth = truth_of(plan, faults, culprit, victim.result(), victim.pid)
    # No other thread can run on the CPU meanwhile.
    truth.needs_quiet = False
    return truth


def quota(lab: Lab, plan: Plan) -> Truth:
    needs()
    group = Group(lab)
    group.limit(None)
    plan.begin()
    words = [f"work_us={plan.whole(9, 16) * 1000}", "pause_us=15000", "name=container"]
    victim = act(lab, plan, "work", *words)
    (group.path / "cgroup.procs").write_text(str(victim.pid))
    limit = plan.whole(8, 15) * 1000
    faults = plan.switch(lambda: group.limit(limit), lambda: group.limit(None))
    culprit = Culprit("cgroup", group.path.name, ["cpu_throttled"], near=["container"])
    culprit.objects = [Thing("cgroup", group.path.name)]
    truth = truth_of(plan, faults, culprit, victim.result(), victim.pid)
    truth.notes.update(group.stat())
    return truth


def fork_storm(lab: Lab, plan: Plan) -> Truth:
    cpu = cpu_of_victim()
    plan.begin()
    words = [f"cpu={cpu}", f"work_us={plan.whole(4, 8) * 1000}", "pause_us=8000"]
    victim = act(lab, plan, "work", *words)
    spawner = act(lab, plan, "storm", f"cpu={cpu}", f"threads={plan.whole(4, 6)}")
    result = spawner.result()
    culprit = Culprit("process", "spawner", ["cpu_runqueue"], spawner.pid, with_children=True)
    culprit.objects = [Thing("cpu", str(cpu))]
    truth = truth_of(plan, plan.windows, culprit, victim.result(), victim.pid)
    truth.notes["runs"] = result["runs"]
    return truth


def periodic_job(lab: Lab, plan: Plan) -> Truth:
    """Runs every second: a longer period would need a run of more than twenty seconds."""
    cpu = cpu_of_victim()
    period, burst = 1_000_000_000, plan.whole(180, 320) * 1_000_000
    plan.begin()
    first = plan.windows[0][0]
    plan.windows = [(first + n * period, first + n * period + burst) for n in range(12)]
    plan.until = plan.windows[-1][1] + 500_000_000
    victim = act(lab, plan, "work", f"cpu={cpu}", "work_us=4000", "pause_us=6000")
    words = [f"cpu={cpu}", f"burst_us={burst // 1000}", "threads=4", "name=logrotate-job"]
    job = act(lab, plan, "spin", *words)
    job.result()
    culprit = Culprit("process", "logrotate-job", ["cpu_runqueue"], job.pid)
    culprit.objects = [Thing("cpu", str(cpu))]
    culprit.observations = ["periodic"]
    truth = truth_of(plan, plan.windows, culprit, victim.result(), victim.pid)
    truth.notes["period_ns"] = period
    return truth


def stop_signal(lab: Lab, plan: Plan) -> Truth:
    plan.begin()
    victim = act(lab, plan, "work", "work_us=3000", "pause_us=4000")
    stopped = plan.whole(300, 500) * 1_000_000
    stopper = lab.start("debugger", stop_and_go, plan, victim.pid, stopped)
    spans = [(begin, end) for begin, end in stopper.result()]
    culprit = Culprit("process", "debugger", ["signal_stop"], stopper.pid, stopper.pid)
    result = victim.result()
    thread, own_spans = {**result["victim"], "pid": victim.pid}, result["victim"]["spans"]
    truth = Truth(plan, spans, [culprit])
    for begin, end in own_spans:
        # A stopped thread does not run, whatever it would have done.
        truth.add(thread, "", (begin, end), [overlap((begin, end), spans)])
    return truth


def stop_and_go(plan: Plan, pid: int, length: int) -> list[tuple[int, int]]:
    spans = []
    for begin, end in plan.windows:
        at = begin
        while at < end:
            sleep_until(at)
            start = time.monotonic_ns()
            os.kill(pid, signal.SIGSTOP)
            sleep_until(start + length)
            os.kill(pid, signal.SIGCONT)
            spans.append((start, time.monotonic_ns()))
            at = spans[-1][1] + 300_000_000
    return spans
