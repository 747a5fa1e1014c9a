import assert from "node:assert/strict";
import { test } from "node:test";

import { namedIn } from "../../src/components/finding_page";
import { roundStep, timelineOf } from "../../src/timeline";
import type { Clock } from "../../src/times";
import type { TimelineRow } from "../../src/types";

const CLOCK: Clock = { begin: 1_000_000_000_000_000_000n, length: 10e9, zone: null };

function row(role: TimelineRow["role"], begin: number, end: number): TimelineRow {
    const at = (ns: number) => (CLOCK.begin + BigInt(ns)).toString();
    return { role, label: "sync[339]", what: "sync()", begin_ns: at(begin), end_ns: at(end), cut: null, id: "op:1" };
}

test("bars lie on one axis from the first start to the last end", () => {
    const drawn = timelineOf(CLOCK, [row("culprit", 1e9, 3e9), row("victim", 2e9, 2.5e9), row("victim", 4e9, 5e9)]);
    assert.deepEqual(
        drawn?.bars.map((bar) => [bar.left, bar.width]),
        [
            [0, 50],
            [25, 12.5],
            [75, 25],
        ],
    );
    assert.deepEqual(
        drawn?.ticks.map((tick) => [tick.at, tick.text]),
        [
            [0, "01:46:41.000"],
            [25, "+1 s"],
            [50, "+2 s"],
            [75, "+3 s"],
        ],
    );
});

test("a short bar stays visible, inside of the axis", () => {
    const drawn = timelineOf(CLOCK, [row("culprit", 0, 1e9), row("victim", 1e9 - 1, 1e9)]);
    const bar = drawn?.bars[1];
    assert.ok(bar && bar.width > 0.3 && bar.left + bar.width <= 100, JSON.stringify(bar?.left));
});

test("nothing is drawn without rows or without time", () => {
    assert.equal(timelineOf(CLOCK, []), null);
    assert.equal(timelineOf(CLOCK, [row("culprit", 5, 5)]), null);
});

test("steps of the axis are round", () => {
    for (const [ns, wanted] of [
        [1, 1],
        [3, 5],
        [110, 200],
        [1000, 1000],
        [7.3e8, 1e9],
    ] as const) {
        assert.equal(roundStep(ns), wanted, String(ns));
    }
});

test("the culprit is found in the sentence, with its ids", () => {
    const actor = { kind: "process", name: "sync", pid: 339, tid: 339 };
    const shown = (sentence: string, of = actor) => {
        const found = namedIn(sentence, of);
        return found && sentence.slice(...found);
    };
    assert.equal(shown("sync (pid 339) ran sync() for 2 s"), "sync (pid 339)");
    assert.equal(shown("Most likely sync (pid 3390) or sync (pid 339)"), "sync (pid 339)");
    assert.equal(shown("Kernel thread sync (pid 339) ran"), "sync (pid 339)");
    assert.equal(shown("reporter (tid 3, python3 pid 2) held it", { kind: "process", name: "python3", pid: 2, tid: 3 }), "reporter (tid 3, python3 pid 2)");
    assert.equal(shown("Device sda was slow", { kind: "device", name: "sda", pid: null, tid: null } as never), "sda");
    assert.equal(shown("no single cause dominates"), null);
});
