import assert from "node:assert/strict";
import { test } from "node:test";

import { Turns } from "../../src/turns";

/** Time passes only by waiting. */
function clock() {
    let at = 1_000_000;
    return { now: () => at, pause: (ms: number) => Promise.resolve().then(() => void (at += ms)) };
}

test("a table waits for tiles, and for those that follow them", async () => {
    const time = clock();
    const turns = new Turns(time.now, time.pause);
    const order: string[] = [];
    const slow = (name: string, ms: number) => async () => {
        await time.pause(ms);
        order.push(name);
    };
    const tracks = turns.take("tracks?track=states", slow("tracks", 100)).then(() => turns.take("tile?level=1", slow("tile", 100)));
    await Promise.all([turns.take("table?what=io", slow("table", 1)), tracks]);
    assert.deepEqual(order, ["tracks", "tile", "table"]);
});

test("nobody waits for charts that never come", async () => {
    const time = clock();
    const turns = new Turns(time.now, time.pause);
    void turns.take("tile?level=1", () => new Promise(() => {}));
    const begin = time.now();
    assert.equal(await turns.take("explain", () => Promise.resolve("told")), "told");
    assert.ok(time.now() - begin < 2000);
});

test("without charts a table is asked for at once", async () => {
    const time = clock();
    const turns = new Turns(time.now, time.pause);
    const begin = time.now();
    await turns.take("table?what=io", () => Promise.resolve());
    assert.equal(time.now(), begin);
});
