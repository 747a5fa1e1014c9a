import assert from "node:assert/strict";
import { test } from "node:test";

import { differences, filtered, ownShares } from "../../src/charts/flame_filter";
import { type FlameData, type Tree, treeOf } from "../../src/charts/flame_layout";

const frame = (name: string, kind = "user") => ({ name, module: null, kind });
/** run > write > [blocked, not sampled]; run > compute. */
const time: FlameData = {
    unit: "ns",
    total: 100,
    frames: [frame("run"), frame("write"), frame("[blocked, not sampled]", "mark"), frame("compute")],
    nodes: [
        [0, 0, 0, 100],
        [0, 0, 0, 100],
        [1, 1, 5, 60],
        [2, 2, 55, 55],
        [1, 3, 40, 40],
    ],
};
const samples: FlameData = {
    unit: "ns",
    total: 50,
    frames: [frame("run"), frame("write"), frame("compute")],
    nodes: [
        [0, 0, 0, 50],
        [0, 0, 0, 50],
        [1, 1, 5, 5],
        [1, 2, 45, 45],
    ],
};

const named = (data: FlameData, name: string) => (at: number) => data.frames[at]?.name === name;
const names = (data: FlameData, tree: Tree): unknown[] => tree.children.map((child) => [data.frames[child.frame]?.name, child.total, ...names(data, child)]);

test("time without samples counts for the call it was spent in", () => {
    assert.deepEqual(
        [...ownShares(time)],
        [
            ["write", 0.6],
            ["compute", 0.4],
        ],
    );
});

test("a function that samples hide is named with both shares", () => {
    assert.deepEqual(differences(time, samples), [
        { name: "compute", time: 0.4, samples: 0.9 },
        { name: "write", time: 0.6, samples: 0.1 },
    ]);
    assert.deepEqual(differences(samples, samples), []);
});

test("stacks that match are kept whole, with their callers; rejected ones go with all below", () => {
    const tree = treeOf(time);
    const kept = filtered(tree, named(time, "write"), null);
    assert.equal(kept.total, 60);
    assert.deepEqual(names(time, kept), [["run", 60, ["write", 60, ["[blocked, not sampled]", 55]]]]);
    const left = filtered(tree, null, named(time, "write"));
    assert.equal(left.total, 40);
    assert.deepEqual(names(time, left), [["run", 40, ["compute", 40]]]);
    assert.equal(filtered(tree, named(time, "nothing like it"), null).total, 0);
    assert.equal(filtered(tree, named(time, "run"), named(time, "run")).total, 0);
});

test("frames too thin to be listed count for their caller", () => {
    const cut: FlameData = { ...time, nodes: time.nodes.map((node, at) => (at === 1 ? ([0, 0, 0, 110] as const) : at === 0 ? ([0, 0, 0, 110] as const) : node)) };
    const tree = treeOf(cut);
    assert.equal(filtered(tree, null, null).total, 110);
    assert.equal(filtered(tree, named(cut, "run"), null).total, 110);
    assert.equal(filtered(tree, named(cut, "compute"), null).total, 40);
});
