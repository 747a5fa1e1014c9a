import assert from "node:assert/strict";
import { test } from "node:test";

import { Pace } from "../../src/pace";

/** A pace whose clock the test advances, and a request that the test ends. */
function started() {
    let at = 5000;
    const pace = new Pace(() => at);
    let end: () => void = () => {};
    const request = pace.during(new Promise<void>((resolve) => (end = resolve)));
    return {
        pace,
        pass: (ms: number) => void (at += ms),
        finish: async () => {
            end();
            await request;
        },
    };
}

test("a page finishes before it shows the next state, and rests as long", async () => {
    const { pace, pass, finish } = started();
    pass(8000);
    assert.equal(pace.isReady(), false, "the explanation is still being made");
    await finish();
    pass(7000);
    assert.equal(pace.isReady(), false);
    pass(1000);
    assert.equal(pace.isReady(), true);
});

test("short requests hold nothing up", async () => {
    const { pace, pass, finish } = started();
    pass(20);
    await finish();
    pass(2000);
    assert.equal(pace.isReady(), true);
});

test("a failed request ends, too", async () => {
    const pace = new Pace(() => 0);
    await assert.rejects(pace.during(Promise.reject(new Error("no longer wanted"))));
    assert.equal(pace.isReady(), true);
});

test("a request that never ends holds the next state up for a minute only", () => {
    const { pace, pass } = started();
    assert.equal(pace.isReady(), false);
    pass(59_000);
    assert.equal(pace.isReady(), false);
    pass(1000);
    assert.equal(pace.isReady(), true);
    pass(2000);
    assert.equal(pace.isReady(), false, "the minute begins again");
});
