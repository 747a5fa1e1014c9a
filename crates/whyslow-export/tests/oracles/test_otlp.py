"""Spans can be read by the published classes of OTLP, and have the durations that queries return."""

import base64
import collections
import json

import pytest


@pytest.fixture
def requests(export):
    pytest.importorskip("opentelemetry.proto", reason="opentelemetry-proto is not installed [python]")
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    lines = export("otlp").read_text().splitlines()
    if not lines:
        pytest.skip("no calls in this recording")
    # Fields that the protocol does not define are an error here. OTLP has ids in hexadecimal
    # digits, whereas the JSON of protocol buffers has base64.
    return [json_format.ParseDict(in_base64(json.loads(line)), ExportTraceServiceRequest()) for line in lines]


def in_base64(document):
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return document


def spans_of(requests):
    for request in requests:
        for resource in request.resource_spans:
            attributes = {one.key: one.value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield attributes["process.pid"].int_value, span


def length(span):
    return span.end_time_unix_nano - span.start_time_unix_nano


def test_operations_are_those_of_the_log(requests, query):
    actual = collections.Counter()
    for pid, span in spans_of(requests):
        if not span.parent_span_id:
            actual[(pid, span.name, span.start_time_unix_nano, length(span))] += 1
    log = query("syscalls", "log", "--min", "1ms", "-n", "0")["tables"]
    wanted = collections.Counter(
        (row["pid"], row["name"], row["ts_ns"], row["dur_ns"]) for table in log for row in table["rows"] if row["dur_ns"] is not None
    )
    assert wanted and actual == wanted


def test_waits_lie_within_their_operation(requests):
    spans = list(spans_of(requests))
    operations = {span.span_id: span for _, span in spans if not span.parent_span_id}
    ids = [span.span_id for _, span in spans]
    assert len(ids) == len(set(ids)) and all(len(one) == 8 and any(one) for one in ids)
    waits = [span for _, span in spans if span.parent_span_id]
    assert waits
    for wait in waits:
        whole = operations[wait.parent_span_id]
        assert wait.trace_id == whole.trace_id and len(wait.trace_id) == 16
        assert whole.start_time_unix_nano <= wait.start_time_unix_nano < wait.end_time_unix_nano <= whole.end_time_unix_nano


def test_time_waited_is_that_of_the_states(requests, query):
    """The longest call that is entirely a wait has the thread states that `states log` returns."""
    longest = max((span for _, span in spans_of(requests) if not span.parent_span_id), key=length)
    tid = next(one.value.int_value for one in longest.attributes if one.key == "thread.id")
    actual = collections.Counter()
    for _, span in spans_of(requests):
        if span.parent_span_id == longest.span_id and not span.name.startswith("block "):
            actual[span.name] += length(span)
    window = f"{longest.start_time_unix_nano}ns..{longest.end_time_unix_nano}ns"
    wanted = collections.Counter()
    for table in query("states", "log", "--tid", str(tid), "--min", "10us", "-n", "0", "-w", window)["tables"]:
        for row in table["rows"]:
            if row["state"] != "running" and row["dur_ns"] is not None:
                begin, end = max(row["ts_ns"], longest.start_time_unix_nano), min(row["ts_end_ns"], longest.end_time_unix_nano)
                if begin < end:
                    wanted[row["state"]] += end - begin
    assert actual == wanted
