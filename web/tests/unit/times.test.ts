import assert from "node:assert/strict";
import { test } from "node:test";

import { clamp, type Clock, civil, offsetText, parseSpan, span, spanText, timeOfDay } from "../../src/times";

const clock: Clock = { begin: 1795220925502483674n, length: 14801613475, zone: "+00:00" };

test("windows go to an address and back without losing a nanosecond", () => {
    for (const window of [
        { begin: 0, end: 1 },
        { begin: 9318016599, end: 9476109390 },
        { begin: 1, end: 9007199254740991 },
        { begin: 1_000_000_000, end: 2_500_000_000 },
    ]) {
        assert.deepEqual(parseSpan(spanText(window)), window);
    }
    assert.equal(offsetText(9318016600), "+9.3180166s");
    assert.equal(parseSpan("+2s..+1s"), null);
    assert.equal(parseSpan("op:17"), null);
});

test("times are those of the recorded zone, to the nanosecond", () => {
    assert.equal(timeOfDay(clock, 0, 1), "00:28:45.502483674");
    assert.equal(timeOfDay({ ...clock, zone: "-05:30" }, 0, 1e6), "18:58:45.502");
    assert.equal(timeOfDay({ ...clock, zone: "America/New_York" }, 0, 1e9), "19:28:45");
    assert.equal(civil({ ...clock, zone: "No/Where" }, 0).zone, "UTC");
    assert.equal(civil(clock, 0).date, "2026-11-21");
    assert.deepEqual(span(clock, "1795220925502483675", "1795220925502484674"), { begin: 1, end: 1000 });
});

test("a window stays inside of the recording", () => {
    assert.deepEqual(clamp({ begin: -50, end: 50 }, 1000), { begin: 0, end: 100 });
    assert.deepEqual(clamp({ begin: 990, end: 1090 }, 1000), { begin: 900, end: 1000 });
    assert.deepEqual(clamp({ begin: -5, end: 5000 }, 1000), { begin: 0, end: 1000 });
    assert.deepEqual(clamp({ begin: 500, end: 500 }, 1000), { begin: 500, end: 510 });
});
