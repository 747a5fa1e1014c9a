"""The score of `./dev eval real` on answers whose verdict is known."""

import pytest
from real_programs import report, score, tables

VICTIM, SERVER, CULPRIT, BEHIND, STRANGER, RUNNER = 10, 20, 30, 40, 99, 1
RECORDER = 50


class Tables:
    """The processes of a run, as `explaining.recording.Recording` has them."""

    maker = RUNNER
    family = frozenset({RUNNER, VICTIM, SERVER, CULPRIT, BEHIND, RECORDER})
    tracers = frozenset({RECORDER})
    known = family | {2, RECORDER}

    def descendants(self, pid):
        return {pid, 31} if pid == CULPRIT else {pid}


def culprit(**changes):
    usual = {"kind": "process", "name": "batch", "mechanisms": ["cpu_running"], "pid": CULPRIT}
    usual.update(tid=None, objects=[], with_children=False, near=[], observations=[])
    return {**usual, "also": [], "tids": [], "middlemen": [], **changes}


def actor(kind="process", name="batch", pid=CULPRIT, tid=None):
    return {"kind": kind, "name": name, "pid": pid, "tid": pid if tid is None else tid}


def part(blamed_actor=None, mechanism="local_ipc", root="cpu_running", ms=100.0, **changes):
    made = {"culprit": blamed_actor or actor(), "mechanism": mechanism, "root": root, "object": None}
    made.update(activity=None, dur_ns=int(ms * 1e6), grade="A")
    return {**made, **changes}


def finding(*parts, confidence="high", target=None, kind="operation", place=0):
    target = target or actor("own", "client", VICTIM)
    made = {"confidence": confidence, "verdict": "SENTENCE", "parts": list(parts), "chain": []}
    made["target"] = {"kind": kind, "actor": target, "begin_ns": 0, "end_ns": 100_000_000}
    return {**made, "culprit": place if parts else None}


OP = {"pid": VICTIM, "tid": VICTIM, "begin_ns": 0, "end_ns": 110_000_000, "true_blame_ms": [100.0]}


def truth(*culprits):
    return {"culprits": list(culprits), "ops": [OP]}


def answered(one, guilty=None, op=OP):
    return score.of_answer({"findings": [one]}, op, truth(guilty or culprit()), Tables())


def result(half="tuned", alone=(), culprits=None, answers=None):
    """A run as it is stored."""
    culprits = [culprit()] if culprits is None else culprits
    ops = []
    if answers:
        ops.append({"answers": answers, "baselines": {}})
    made = {"scenario": "one", "seed": 1, "half": half, "culprits": culprits, "ops": ops}
    answer = {"findings": list(alone)}
    made["alone"] = score.of_recording(answer, truth(*culprits), Tables())
    return {**made, "load": [0.1, 0.2]}


def test_the_culprit_is_right_and_its_child_if_children_count():
    assert answered(finding(part()))["verdict"] == "right"
    child = finding(part(actor(name="dd", pid=31)))
    assert answered(child, culprit(with_children=True))["verdict"] == "right"
    assert answered(child)["verdict"] == "outside"


@pytest.mark.parametrize(
    ("blamed_actor", "mechanism", "root"),
    [
        (actor("peer", "127.0.0.1:7013", None), "network_remote", "network_remote"),
        (actor("peer", "127.0.0.53:53", None), "dns_lookup", "dns_lookup"),
        (actor("own", "client", VICTIM), "timer_sleep", "timer_sleep"),
        (actor("timer", "timer", None), "timer_sleep", "timer_sleep"),
        (actor("process", "redis-server", SERVER), "local_ipc", "local_ipc"),
        (actor("unknown", "unknown", None), "woken_by", "unknown"),
    ],
)
def test_a_dead_end_is_no_right_claim(blamed_actor, mechanism, root):
    scored = answered(finding(part(blamed_actor, mechanism, root)))
    assert scored["verdict"] == "dead_end"
    run = {**result(), "ops": [{"answers": {"window": scored}}]}
    assert list(score.claims(run)) == [("high", False)]


def test_a_culprit_of_which_only_the_missing_reply_is_known_is_a_dead_end():
    silent = finding(part(root="local_ipc"))
    assert answered(silent)["verdict"] == "dead_end"
    # Unless that is what was injected.
    assert answered(silent, culprit(mechanisms=["local_ipc"]))["verdict"] == "right"


def test_a_middleman_is_partly_right_which_is_not_right():
    scored = answered(
        finding(part(actor(name="nginx", pid=SERVER), root="timer_sleep")), culprit(middlemen=["nginx"])
    )
    assert scored["verdict"] == "partly"
    assert scored["verdict"] not in score.GOOD
    assert scored["verdict"] not in score.UNJUDGED


def test_a_thread_that_is_meant_must_be_named():
    guilty = culprit(tids=[32])
    assert answered(finding(part(actor(tid=32))), guilty)["verdict"] == "right"
    assert answered(finding(part(actor(tid=33))), guilty)["verdict"] == "partly"


def test_a_thread_is_known_by_its_own_name():
    guilty = culprit(name="pool-1-*", tids=[32])
    named = answered(finding(part(actor(name="pool-1-3", tid=32))), guilty)
    assert named["thread"] is True
    assert answered(finding(part(actor(name="java", tid=32))), guilty)["thread"] is False
    assert "thread" not in answered(finding(part()))


def test_the_client_behind_a_server_is_the_same_answer():
    behind = finding(part(actor(name="report", pid=BEHIND)))
    assert answered(behind, culprit(also=[BEHIND]))["verdict"] == "right"
    assert answered(behind)["verdict"] == "wrong"


def test_a_thread_that_works_for_the_culprit_is_near():
    journal = finding(part(actor("kernel", "jbd2/loop0-8", 300), "journal_wait", "block_service"))
    assert answered(journal, culprit(near=["jbd2/*"]))["verdict"] == "near"


def test_a_process_that_is_not_part_of_the_run_is_not_judged():
    scored = answered(finding(part(actor(name="cargo", pid=STRANGER))))
    assert scored["verdict"] == "outside"
    assert not list(score.claims({**result(), "ops": [{"answers": {"window": scored}}]}))


def test_no_culprit_and_no_confidence_are_silent():
    assert answered(finding())["verdict"] == "silent"
    assert answered(finding(part(), confidence="none"))["verdict"] == "silent"
    assert score.of_answer({"failed": "exit 3"}, OP, truth(culprit()), Tables())["verdict"] == "silent"


def test_a_group_is_named_by_its_limit_or_by_its_process_with_the_mechanism():
    guilty = culprit(kind="cgroup", name="shop", pid=None, also=[SERVER], mechanisms=["cpu_throttled"])
    named = finding(part(actor("cgroup", "shop", None), "cpu_throttled", "cpu_throttled"))
    assert answered(named, guilty)["verdict"] == "right"
    process = actor(name="gunicorn", pid=SERVER)
    throttled = finding(part(process, "local_ipc", "cpu_throttled"))
    assert answered(throttled, guilty)["verdict"] == "right"
    running = finding(part(process, "local_ipc", "cpu_running"))
    assert answered(running, guilty)["verdict"] == "wrong"


def test_the_victim_is_its_own_culprit_only_by_what_it_did():
    guilty = culprit(kind="own", name="client", pid=VICTIM, mechanisms=["send_delayed"])
    own = actor("own", "client", VICTIM)
    delayed = finding(part(own, "send_delayed", "send_delayed"))
    assert answered(delayed, guilty)["verdict"] == "right"
    slept = finding(part(own, "timer_sleep", "timer_sleep"))
    assert answered(slept, guilty)["verdict"] == "dead_end"


@pytest.mark.parametrize(("ms", "is_right"), [(95.0, True), (109.0, True), (85.0, False), (111.0, False)])
def test_milliseconds_count_within_a_tenth(ms, is_right):
    scored = answered(finding(part(ms=ms), part(actor("own", "client", VICTIM), ms=1.0)))
    assert scored["ms"] is is_right


def test_the_mechanism_is_that_of_the_culprit():
    assert answered(finding(part(root="cpu_running")))["mechanism"] is True
    assert answered(finding(part(root="timer_sleep")))["mechanism"] is False


def test_an_object_is_found_by_its_name_or_by_the_client_that_is_meant():
    guilty = culprit(also=[BEHIND], objects=[{"kind": "any", "name": "stock"}])
    thing = {"kind": "file", "name": "/var/lib/stock"}
    assert answered(finding(part(object=thing)), guilty)["object"] is True
    assert answered(finding(part()), guilty)["object"] is False
    assert answered(finding(part(actor(pid=BEHIND))), guilty)["object"] is True
    assert answered(finding(part()))["object"] is None


def test_the_first_and_the_first_three_findings_of_a_recording():
    other = finding(part(actor(name="nginx", pid=SERVER), root="block_service"))
    right = finding(part())
    alone = result(alone=[other, right])["alone"]
    assert (alone["top1"], alone["top3"]) == (False, True)
    assert result(alone=[right])["alone"]["top1"]
    assert not result(alone=[other, other, other, right])["alone"]["top3"]
    assert not result(alone=[])["alone"]["top3"]


def test_findings_about_other_work_of_the_machine_have_no_rank():
    stranger = actor("own", "cargo", STRANGER)
    outside = finding(part(actor("process", "rustc", 98)), target=stranger)
    alone = result(alone=[outside, finding(part())])["alone"]
    assert alone["top1"]
    assert alone["left_out"] == 1
    # Even if they blame a process of the run, unless it is the culprit.
    blamed = finding(part(actor("process", "nginx", SERVER)), target=stranger)
    assert result(alone=[blamed])["alone"]["findings"] == []
    assert result(alone=[finding(part(), target=stranger)])["alone"]["top1"]
    other_thread = finding(part(actor(tid=33)), target=stranger)
    assert result(alone=[other_thread], culprits=[culprit(tids=[32])])["alone"]["findings"] == []


def test_a_culprit_on_a_cpu_that_the_recorder_or_a_stranger_needs_is_not_the_fault():
    guilty = culprit(mechanisms=["pipe_wait", "cpu_running"])
    queued = part(mechanism="cpu_runqueue", root="cpu_running")
    recorder = finding(queued, target=actor("own", "whyslow", RECORDER))
    alone = result(alone=[recorder, finding(part())], culprits=[guilty])["alone"]
    # It is left out like the other work of the machine.
    assert (alone["left_out"], len(alone["findings"])) == (1, 1)
    stranger = finding(queued, target=actor("own", "cargo", STRANGER))
    assert result(alone=[stranger], culprits=[guilty])["alone"]["findings"] == []
    # Unless that is what was injected.
    hog = culprit(mechanisms=["cpu_runqueue"])
    assert result(alone=[stranger], culprits=[hog])["alone"]["top1"]


def test_a_wait_of_the_culprit_itself_is_not_the_fault():
    """`batch` waits for its own report: its name there has nothing to do with the victim."""
    guilty = culprit(also=[BEHIND])
    own = finding(part(actor("own", "batch", CULPRIT)), target=actor("own", "batch", CULPRIT))
    client = finding(part(), target=actor("own", "report", BEHIND))
    for one in (own, client):
        run = result(alone=[one], culprits=[guilty])
        assert run["alone"]["findings"][0]["verdict"] == "other"
        assert not run["alone"]["top1"]
        assert not list(score.claims(run))


def test_a_request_that_the_culprit_serves_is_a_victim():
    served = finding(part(actor("own", "batch", CULPRIT)), target=actor("own", "batch", CULPRIT), kind="request")
    assert result(alone=[served])["alone"]["top1"]


def test_both_of_two_faults_have_to_be_found():
    second = culprit(name="dd", pid=SERVER)
    one, two = finding(part()), finding(part(actor(name="dd", pid=SERVER)))
    assert result(alone=[one, two], culprits=[culprit(), second])["alone"]["all_top3"]
    assert not result(alone=[one, one], culprits=[culprit(), second])["alone"]["all_top3"]


@pytest.mark.parametrize(
    ("blamed_actor", "confidence", "is_quiet"),
    [
        (actor(), "high", False),
        (actor(), "medium", False),
        (actor(), "low", True),
        (actor("own", "client", VICTIM), "high", True),
        (actor("process", "cargo", STRANGER), "high", True),
    ],
)
def test_without_a_fault_a_culprit_is_wrong(blamed_actor, confidence, is_quiet):
    run = result(alone=[finding(part(blamed_actor), confidence=confidence)], culprits=[])
    assert run["alone"]["quiet"] is is_quiet
    is_judged = blamed_actor["kind"] != "own" and blamed_actor["pid"] != STRANGER
    assert list(score.claims(run)) == ([(confidence, False)] if is_judged else [])


def test_confidence_is_compared_with_its_target():
    right = answered(finding(part()))
    wrong = answered(finding(part(actor(name="nginx", pid=SERVER), root="block_service")))
    low = answered(finding(part(), confidence="low"))
    run = {**result(), "ops": [{"answers": {"window": right, "call": wrong, "request": low}}]}
    assert list(tables.calibrated([run])) == [("high", 2, 1), ("medium", 0, 0), ("low", 1, 1)]


def test_answers_of_the_sealed_half_are_not_printed():
    wrong = answered(finding(part(actor(name="nginx", pid=SERVER), root="block_service")))
    for half, is_printed in (("tuned", True), ("sealed", False)):
        run = result(half, answers={"window": wrong})
        assert ("SENTENCE" in "\n".join(report.mistakes([run]))) is is_printed
        assert "SENTENCE" not in tables.line(run)
        assert "SENTENCE" not in "\n".join(tables.figures([run]))


def test_a_skipped_run_counts_nowhere():
    skipped = {"scenario": "two", "seed": 1, "half": "tuned", "skipped": "not installed: etcd"}
    assert list(tables.figures([result(), skipped])) == list(tables.figures([result()]))
    assert "not installed: etcd" in "\n".join(report.skipped([skipped]))


def test_a_simpler_method_may_name_a_thread_without_a_name():
    unnamed = {"pid": SERVER, "tid": SERVER, "comm": None, "ms": 1.0}
    guilty = culprit(middlemen=["nginx"])
    assert score.of_baseline(unnamed, OP, truth(guilty), Tables())["verdict"] == "wrong"
    assert score.of_baseline(None, OP, truth(guilty), Tables())["verdict"] == "silent"
    named = {"pid": CULPRIT, "tid": CULPRIT, "comm": "batch", "ms": 1.0}
    assert score.of_baseline(named, OP, truth(guilty), Tables())["verdict"] == "right"


def test_a_victim_in_the_process_of_the_culprit_is_a_victim():
    def alone(tid):
        target = actor("own", "batch", CULPRIT, tid)
        waits_for = part(actor(pid=CULPRIT, tid=CULPRIT + 1))
        answer = {"findings": [finding(waits_for, target=target)]}
        of_run = {"culprits": [culprit()], "ops": [{**OP, "pid": CULPRIT, "tid": CULPRIT + 2}]}
        return score.of_recording(answer, of_run, Tables())["findings"][0]["verdict"]

    assert alone(CULPRIT + 2) == "right"
    assert alone(CULPRIT + 3) == "other"
