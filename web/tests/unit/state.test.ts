import assert from "node:assert/strict";
import { test } from "node:test";

import { address } from "../../src/api";
import { filterWords, PAGES, quoted, readView, writeView } from "../../src/state";
import { pageInfo, PAGE_LIST } from "../../src/tabs";

test("an address holds all of a view", () => {
    const view = {
        recording: "web.wsl",
        page: "io" as const,
        window: { begin: 1, end: 1500000000 },
        filter: { comm: "a b*", "min-size": "8k", errors: "true" },
        baseline: { begin: 0, end: 10 },
        selected: "op:17",
        options: { tab: "heat", q: "SELECT '&' || x" },
    };
    assert.deepEqual(readView(writeView(view)), view);
    assert.equal(writeView(readView("")), "");
});

test("the same query has the same address", () => {
    assert.equal(address("table", { what: "io", w: "+1s..+2s", view: "top" }), address("table", { view: "top", what: "io", w: "+1s..+2s" }));
    assert.equal(address("recordings", {}), "recordings");
    assert.equal(address("table", { a: undefined, b: "", c: false, d: 0 }), "table?d=0");
});

test("every page has its description", () => {
    for (const page of PAGES) assert.equal(pageInfo(page).id, page);
    assert.equal(new Set(PAGE_LIST.map((page) => page.key)).size, PAGES.length);
    for (const page of PAGE_LIST) assert.equal(new Set(page.tabs.map((tab) => tab.id)).size, page.tabs.length);
});

test("commands are quoted as a shell wants it", () => {
    assert.equal(quoted("web.wsl"), "web.wsl");
    assert.equal(quoted("it's; rm -rf *"), "'it'\\''s; rm -rf *'");
    assert.equal(filterWords({ comm: "apache*", errors: "true" }, { begin: 0, end: 5 }), "--comm 'apache*' --errors -w +0s..+0.000000005s");
});
