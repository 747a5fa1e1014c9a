"""Profiles are read by the tools they are for; each finds the time that `stacks` reports."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as tree

import pytest


@pytest.fixture
def off_cpu_ns(query):
    """Off-CPU time of the whole recording in ns."""
    tables = query("stacks", "usage", "--op", "offcpu", "-n", "0")["tables"]
    return sum(row["total_ns"] for table in tables for row in table["rows"])


def test_collapsed(export, off_cpu_ns):
    lines = export("collapsed").read_text().splitlines()
    weights = [int(re.fullmatch(r"[^;]+(?:;[^;]+)* (\d+)", line)[1]) for line in lines]
    assert sum(weights) == off_cpu_ns


def test_pprof(export, off_cpu_ns):
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed [tools]")
    path = export("pprof")
    top = subprocess.run(
        [go, "tool", "pprof", "-sample_index=offcpu", "-unit=ns", "-nodecount=100000", "-top", path],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ).stdout
    if off_cpu_ns == 0:
        assert "Total samples = 0" in top or "profile is empty" in top, top
        return
    flat = re.findall(r"^\s*(\d+)ns\s", top, re.MULTILINE)
    assert sum(int(ns) for ns in flat) == off_cpu_ns, top[:2000]


def test_speedscope(export, off_cpu_ns):
    document = json.loads(export("speedscope").read_text())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    total = 0
    for profile in document["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        total += sum(profile["weights"])
    assert total == off_cpu_ns


def test_firefox(export, query, off_cpu_ns):
    """Walks the profile like the Firefox Profiler: from a sample along prefixes to frames, functions and names."""
    document = json.loads(export("firefox").read_text())
    assert document["meta"]["symbolicated"] is True
    weights, markers, seen = 0.0, 0, set()
    for thread in document["threads"]:
        samples, stacks = thread["samples"], thread["stackTable"]
        assert len(samples["stack"]) == len(samples["weight"]) == samples["length"]
        assert samples["weightType"] == "tracing-ms"
        weights += sum(samples["weight"])
        markers += thread["markers"]["length"]
        for stack in samples["stack"]:
            while stack is not None:
                function = thread["frameTable"]["func"][stacks["frame"][stack]]
                seen.add(thread["stringArray"][thread["funcTable"]["name"][function]])
                prefix = stacks["prefix"][stack]
                assert prefix is None or prefix < stack
                stack = prefix
    # Sums of milliseconds as doubles.
    assert round(weights * 1e6) == pytest.approx(off_cpu_ns, abs=1000)
    assert bool(seen) == (off_cpu_ns > 0)
    long = [table for kind in ("syscalls", "block") for table in query(kind, "log", "--min", "1ms", "-n", "0")["tables"]]
    assert markers == sum(row["dur_ns"] is not None for table in long for row in table["rows"])


def test_svg(export, off_cpu_ns):
    root = tree.parse(export("svg")).getroot()
    name = "{http://www.w3.org/2000/svg}"
    titles = [group.find(f"{name}title").text for group in root.iter(f"{name}g") if group.find(f"{name}title") is not None]
    if off_cpu_ns == 0:
        assert titles == []
        return
    whole = next(title for title in titles if title.startswith("all: "))
    assert int(re.search(r"(\d+) ns", whole)[1]) == off_cpu_ns
    outside = [value for element in root.iter() for key, value in element.items() if "href" in key or value.startswith("http")]
    assert outside == []
