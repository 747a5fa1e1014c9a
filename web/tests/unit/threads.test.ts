import assert from "node:assert/strict";
import { test } from "node:test";

import { fromHex, type Palette } from "../../src/charts/colour";
import { type Lane, lanesOfRows, poolOf, rowsOf } from "../../src/charts/rows";
import { INFERRED, isFree, sampleColour, sampleValue, UNINTERRUPTIBLE, UNSEEN } from "../../src/charts/sample_paint";
import { followed, linksOf, nextEvent, patternOf, type SampleGap, threadParameters, together, type Wait } from "../../src/threads";
import { offsetText, parseOffset } from "../../src/times";

const lane = (id: number, name: string, pid: number | null = 1): Lane => ({ lane: id, name, tid: 100 + id, pid, process: null });
const [waiter, holder, other] = [lane(1, "handler-1"), lane(2, "handler-2"), lane(3, "network-1")];
const wait: Wait = { lane: waiter, holder, begin: 10, end: 100, lock: "Object", doing: "write", confidence: "medium" };
const gap: SampleGap = { lane: holder, begin: 20, end: 90, kind: "kernel_wait", endedIn: "write", group: 7 };
const otherGap: SampleGap = { lane: other, begin: 15, end: 91, kind: "kernel_wait", endedIn: "sendfile64", group: 7 };

test("threads of a pool differ in digits and ids only", () => {
    assert.equal(poolOf("data-plane-kafka-request-handler-12"), "data-plane-kafka-request-handler-N");
    assert.equal(poolOf("w-3f2504e0-4f89-11d3-9a0c-0305e82c3301-7"), "w-N-N");
    assert.equal(poolOf("main"), "main");
});

test("pools are headings with a strip of their own, and fold", () => {
    const lanes = [lane(1, "a-1"), lane(2, "b"), lane(3, "a-2")];
    const { rows } = rowsOf(lanes, new Set(), 20, "pool");
    assert.deepEqual(
        rows.map((row) => (row.kind === "group" ? `${row.label} ${row.count}` : row.lane.lane)),
        ["a-N 2", 1, 3, 2],
    );
    assert.deepEqual(lanesOfRows(rows), [1, 3, 2]);
    const [first] = rows;
    const folded = rowsOf(lanes, new Set(first?.kind === "group" ? [first.key] : []), 20, "pool");
    assert.equal(folded.rows.length, 2);
    assert.deepEqual(lanesOfRows(folded.rows), [1, 3, 2], "a folded pool is still drawn");
    assert.equal(rowsOf(lanes, new Set(), 20).rows.filter((row) => row.kind === "group").length, 1, "by default groups are processes");
});

test("a wait leads to the lock holder, and from there to threads with a simultaneous gap", () => {
    const first = followed([wait], [gap, otherGap], waiter, 50);
    assert.equal(first?.lane, holder);
    assert.match(first?.text ?? "", /waited for Object, held by handler-2 102 \(medium confidence\), which was in write/);
    const second = followed([wait], [gap, otherGap], holder, first?.at ?? 0);
    assert.equal(second?.lane, other);
    assert.match(second?.text ?? "", /network-1 103, in sendfile64/);
    assert.equal(followed([wait], [gap, otherGap], waiter, 100), null, "the end is outside");
    // If the holder had no sampling gap at that time, the time of its gap is returned.
    assert.equal(followed([wait], [gap, otherGap], waiter, 12)?.at, 55);
});

test("silences of one group belong together, those of others do not", () => {
    assert.deepEqual(together([gap, otherGap, { ...otherGap, group: 8 }], gap), [otherGap]);
    assert.deepEqual(together([gap, { ...otherGap, group: null }], { ...gap, group: null }), []);
});

test("links are arrows from waits, and lines without one between silences", () => {
    const links = linksOf([wait, { ...wait, holder: null }, { ...wait, holder: waiter }], [gap, otherGap]);
    assert.deepEqual(
        links.map((link) => [link.from, link.to, link.isArrow, link.surety]),
        [
            [1, 2, true, "medium"],
            [2, 3, false, "low"],
        ],
    );
});

test("patterns name threads, and invalid ones are reported", () => {
    assert.equal(patternOf(""), null);
    assert.equal(patternOf("("), "wrong");
    assert.ok((patternOf("HANDLER-[0-9]$") as RegExp).test("handler-1"));
});

test("queries are about the threads that the pattern leaves, however many they are", () => {
    const pattern = /handler/i;
    assert.deepEqual(threadParameters([waiter, holder], 3, pattern), { tid: "101,102" });
    assert.deepEqual(threadParameters([waiter, holder], 2, pattern), {}, "all threads need no filter");
    assert.deepEqual(threadParameters([], 3, pattern), { threads: "(?i)handler" }, "no match does not select all");
    const many = Array.from({ length: 650 }, (_, number) => ({ ...waiter, tid: number + 1 }));
    assert.deepEqual(threadParameters(many, 700, pattern), { threads: "(?i)handler" });
    assert.deepEqual(threadParameters([{ ...waiter, tid: null }], 3, pattern), { threads: "(?i)handler" });
});

test("moments have one spelling", () => {
    for (const ns of [0, 1, 1_500_000_000, 86_400_000_000_001]) assert.equal(parseOffset(offsetText(ns)), ns);
    for (const text of ["", "1s", "+s", "+1", "+1s..+2s"]) assert.equal(parseOffset(text), null);
});

test("the next moment of a row is a wait or a silence of it", () => {
    // Without a recording the window ends after 1 ns.
    assert.equal(nextEvent([wait], [gap], other, 0, false), null);
});

const palette = {
    card: fromHex("#ffffff"),
    line: fromHex("#d5dae1"),
    running: fromHex("#1a8a5f"),
    runnable: fromHex("#e0a100"),
    blocked: fromHex("#c8400f"),
    asleep: fromHex("#a9b4c2"),
    inferred: fromHex("#7a2fb5"),
    unseen: fromHex("#66717f"),
    series: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => fromHex(`#1${at}345${at}`)),
} as unknown as Palette;

test("what is inferred looks like nothing that was recorded", () => {
    const recorded = sampleColour(1, UNINTERRUPTIBLE, false, palette);
    const inferred = sampleColour(INFERRED, 6, false, palette);
    assert.notEqual(recorded, inferred);
    const texture = (group: number, value: number) => Array.from({ length: 36 }, (_, at) => isFree(group, value, at % 6, Math.floor(at / 6)));
    assert.notDeepEqual(texture(1, UNINTERRUPTIBLE), texture(INFERRED, 6));
    assert.notDeepEqual(texture(INFERRED, 6), texture(INFERRED, 7), "page faults look different");
    assert.notDeepEqual(texture(INFERRED, 6), texture(UNSEEN, 8));
    assert.ok(texture(0, 0).every((free) => !free));
});

test("zoomed in a function has its colour, and a paler one while it waits", () => {
    const value = (called: number) => (called << 6) | (3 << 4);
    assert.deepEqual(sampleValue(value(77) | 2), { place: 2, code: 3, called: 77 });
    assert.equal(sampleColour(0, value(77), true, palette), sampleColour(0, value(77), true, palette));
    const colours = new Set([1, 2, 3, 4, 5, 6, 7, 8].map((called) => sampleColour(0, value(called), true, palette)));
    assert.ok(colours.size > 4, "neighbours differ");
    assert.notEqual(sampleColour(0, value(77), true, palette), sampleColour(1, value(77) | 2, true, palette));
    assert.equal(sampleColour(0, value(1), false, palette), sampleColour(0, value(2), false, palette), "zoomed out, the kind of code decides");
});
