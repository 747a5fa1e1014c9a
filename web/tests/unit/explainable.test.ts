import assert from "node:assert/strict";
import { test } from "node:test";

import { explainCommand, explainRequest, rowSpan } from "../../src/explainable";
import { selectedRow } from "../../src/selection";
import type { Clock } from "../../src/times";

const CLOCK: Clock = { begin: 1_000_000_000_000_000_000n, length: 10e9, zone: null };
const SHOWN = { begin: 1e9, end: 2e9 };

const request = (id: string | null, row?: Record<string, string | number | null>) =>
    explainRequest({ id, ...(row ? { row } : {}) }, CLOCK, SHOWN);

test("rows with an id are explained by it, also without their cells", () => {
    for (const id of ["op:17", "block:3", "state:9", "slice:1", "lock:2", "gap:0", "dns:5", "query:4", "function:8", "reclaim:6"]) {
        assert.deepEqual(request(id), { w: id }, id);
    }
    assert.deepEqual(request("request:17"), { request: "17" });
    assert.deepEqual(request("request_thread:3", { request: "request:17", tid: 5 }), { request: "17" });
});

test("rows of threads are explained by the time of the thread", () => {
    const times = { ts_ns: "1000000005000000000", ts_end_ns: "1000000005400000000", dur_ns: 4e8 };
    assert.deepEqual(request("item:3", { ...times, tid: 31517 }), { w: "+5s..+5.4s", tid: "31517" });
    // A row of a sum has no time of its own.
    assert.deepEqual(request(null, { comm: "java", tid: 31517 }), { w: "+1s..+2s", tid: "31517" });
    assert.deepEqual(request(null, { dev: "sda", requests: 7 }), { w: "+1s..+2s", dev: "sda" });
});

test("what has no duration and no thread cannot be explained", () => {
    assert.equal(request("stack:3", { ts_ns: "1000000005000000000", tid: 7 }), null);
    assert.equal(request("file:3"), null);
    assert.equal(request("finding:0"), null);
    assert.equal(request(null), null);
    assert.equal(request(null, { endpoint: "/", count: 3 }), null);
});

test("a row in progress lasts until the end of the recording", () => {
    const open = { ts_ns: "1000000009000000000", dur_ns: null, ts_end_ns: null };
    assert.deepEqual(rowSpan(CLOCK, open), { begin: 9e9, end: 10e9 });
    assert.equal(rowSpan(CLOCK, { ts_ns: "1000000009000000000" }), null);
});

test("the command explains the same", () => {
    const check = (of: Parameters<typeof explainCommand>[1], wanted: string) => assert.equal(explainCommand("web.wsl", of), wanted);
    check({ w: "op:17" }, "whyslow explain web.wsl -w op:17");
    check({ request: "17" }, "whyslow explain web.wsl --request 17");
    check({ w: "+5s..+5.4s", tid: "31517" }, "whyslow explain web.wsl -w +5s..+5.4s -t 31517");
    check({ w: "+1s..+2s", dev: "my disk" }, "whyslow explain web.wsl -w +1s..+2s -d 'my disk'");
});

test("the selection follows the address, and keeps the cells of the clicked row", () => {
    const clicked = { id: "op:17", row: { tid: 5 } };
    assert.equal(selectedRow("op:17", clicked), clicked);
    // Back to another row, or to none.
    assert.deepEqual(selectedRow("op:3", clicked), { id: "op:3" });
    assert.equal(selectedRow(null, clicked), null);
    assert.equal(selectedRow(null, null), null);
    // A row without an id is not in the address.
    const nameless = { id: null, row: { tid: 5 } };
    assert.equal(selectedRow(null, nameless), nameless);
});
