import assert from "node:assert/strict";
import { test } from "node:test";

import { RequestScheduler } from "../../src/request_scheduler";

/** A clock that advances only while code waits. */
function clock() {
    let at = 1_000_000;
    return { now: () => at, pause: (ms: number) => Promise.resolve().then(() => void (at += ms)) };
}

test("a table waits for tiles, and for those that follow them", async () => {
    const time = clock();
    const scheduler = new RequestScheduler(time.now, time.pause);
    const order: string[] = [];
    const slow = (name: string, ms: number) => async () => {
        await time.pause(ms);
        order.push(name);
    };
    const tracks = scheduler.run("tracks?track=states", slow("tracks", 100)).then(() => scheduler.run("tile?level=1", slow("tile", 100)));
    await Promise.all([scheduler.run("table?what=io", slow("table", 1)), tracks]);
    assert.deepEqual(order, ["tracks", "tile", "table"]);
});

test("no request waits for charts that never come", async () => {
    const time = clock();
    const scheduler = new RequestScheduler(time.now, time.pause);
    void scheduler.run("tile?level=1", () => new Promise(() => {}));
    const begin = time.now();
    assert.equal(await scheduler.run("explain", () => Promise.resolve("ok")), "ok");
    assert.ok(time.now() - begin < 2000);
});

test("without charts a table is requested at once", async () => {
    const time = clock();
    const scheduler = new RequestScheduler(time.now, time.pause);
    const begin = time.now();
    await scheduler.run("table?what=io", () => Promise.resolve());
    assert.equal(time.now(), begin);
});
