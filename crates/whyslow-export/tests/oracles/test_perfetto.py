"""Perfetto's own format definition reads the export, with the same numbers."""

from collections import Counter, defaultdict

import pytest

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed [python]")
from google.protobuf import unknown_fields  # noqa: E402
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto  # noqa: E402

BEGIN, END = 1, 2


@pytest.fixture
def trace(export):
    trace = perfetto.Trace()
    trace.ParseFromString(export("perfetto").read_bytes())
    return trace


def ftrace(trace):
    for packet in trace.packet:
        for event in packet.ftrace_events.event:
            yield packet.ftrace_events.cpu, event


def slices(trace):
    """Category, track, start and end of every slice, paired as in trace_processor."""
    categories, events = {}, []
    for packet in trace.packet:
        for name in packet.interned_data.event_categories:
            categories[name.iid] = name.name
        if packet.HasField("track_event"):
            event = packet.track_event
            category = [categories[iid] for iid in event.category_iids]
            events.append((packet.timestamp, event.type, event.track_uuid, category))
    open_slices, found = defaultdict(list), []
    # Of simultaneous events, the one written first comes first; an end closes the slice opened last
    # on its track.
    for at, kind, track, category in sorted(events, key=lambda event: event[0]):
        if kind == BEGIN:
            open_slices[track].append((at, category[0]))
        elif kind == END:
            begin, name = open_slices[track].pop()
            found.append((name, track, begin, at))
    unfinished = [(name, track, at, None) for track, left in open_slices.items() for at, name in left]
    return found + unfinished


def unknown(message):
    """Fields that Perfetto's definition does not contain, at any depth."""
    found = [field.field_number for field in unknown_fields.UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            parts = value if descriptor.is_repeated else [value]
            for part in parts:
                found += unknown(part)
    return found


def test_nothing_unknown_is_written(trace):
    assert len(trace.packet) > 3
    kinds = {packet.WhichOneof("data"): packet for packet in trace.packet}
    assert {number for packet in kinds.values() for number in unknown(packet)} == set()
    assert {"ftrace_events", "process_tree", "clock_snapshot", "system_info"} <= set(kinds)


def test_there_are_as_many_as_the_recording_has(trace, rows_of):
    of = Counter(name for name, *_ in slices(trace))
    assert of["syscall"] == rows_of("syscall")
    assert of["block"] == rows_of("block_io")
    assert of["lock"] == rows_of("lock_wait")
    kinds = Counter(event.WhichOneof("event") for _, event in ftrace(trace))
    wakeups = kinds["sched_waking"] + kinds["sched_wakeup"] + kinds["sched_wakeup_new"]
    assert wakeups == rows_of("wakeup")
    began = sum(1 for _, event in ftrace(trace) if event.sched_switch.next_pid)
    assert began == rows_of("sched_slice")


def test_slices_of_a_track_lie_within_each_other(trace):
    by_track = defaultdict(list)
    for _, track, begin, end in slices(trace):
        if end is not None:
            assert begin <= end
            by_track[track].append((begin, end))
    for track in by_track.values():
        track.sort(key=lambda one: (one[0], -one[1]))
        for (begin, end), (next_begin, next_end) in zip(track, track[1:]):
            assert next_begin >= end or next_end <= end, (begin, end, next_begin, next_end)


def test_each_cpu_goes_on_with_whom_it_switched_to(trace):
    """`sched` and `thread_state` are derived from consecutive switches, which must not contradict."""
    by_cpu = defaultdict(list)
    for cpu, event in ftrace(trace):
        if event.HasField("sched_switch"):
            by_cpu[cpu].append(event)
    for events in by_cpu.values():
        times = [event.timestamp for event in events]
        assert times == sorted(times)
        for before, after in zip(events, events[1:]):
            assert before.sched_switch.next_pid == after.sched_switch.prev_pid


def test_time_on_cpus_is_that_of_the_recording(trace, query, rows_of):
    if rows_of("sched_slice") == 0:
        pytest.skip("no scheduling in this recording")
    ran, on = Counter(), {}
    for cpu, event in ftrace(trace):
        switch = event.sched_switch
        if not event.HasField("sched_switch"):
            continue
        if cpu in on:
            tid, since = on[cpu]
            ran[tid] += event.timestamp - since
        on[cpu] = (switch.next_pid, event.timestamp)
    table = query("cpu", "log", "-n", "0")["tables"][0]
    actual = Counter()
    for row in table["rows"]:
        actual[row["tid"]] += (row["ts_end_ns"] or row["ts_ns"]) - row["ts_ns"]
    assert {tid: ns for tid, ns in ran.items() if tid} == {tid: ns for tid, ns in actual.items() if ns}


def test_a_window_leaves_the_rest_out(export, query, rows_of):
    if rows_of("syscall") == 0:
        pytest.skip("no calls in this recording")
    trace = perfetto.Trace()
    window = ("-w", "+2s..+3s")
    trace.ParseFromString(export("perfetto", *window).read_bytes())
    actual = query("syscalls", "log", "-n", "0", *window)["tables"][0]["rows"]
    assert sum(1 for name, *_ in slices(trace) if name == "syscall") == len(actual)
