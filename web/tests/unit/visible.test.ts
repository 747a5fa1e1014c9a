import assert from "node:assert/strict";
import { test } from "node:test";

import { shortened, title, visible } from "../../src/visible";

test("what cannot be seen is written out", () => {
    const cases: readonly (readonly [string, string])[] = [
        ["plain /a/b-1.txt", "plain /a/b-1.txt"],
        ["a\nb\tc\0", "a\\nb\\tc\\0"],
        ["\u001b[31mred", "\\u{1b}[31mred"],
        ["left\u202eright", "left\\u{202e}right"],
        ["a\u2066b\u200bc\ufeff", "a\\u{2066}b\\u{200b}c\\u{feff}"],
        ["half \ud800 pair", "half \\u{d800} pair"],
        ["half \udc00 pair", "half \\u{dc00} pair"],
        ["whole 😀 pair", "whole 😀 pair"],
        ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
    ];
    for (const [text, wanted] of cases) assert.equal(visible(text), wanted);
});

test("long names are cut in the middle, and pairs stay whole", () => {
    assert.equal(shortened("/var/lib/php/sessions/sess_abcdef", 15), "/var/…ss_abcdef".padEnd(15));
    assert.equal(Array.from(shortened("😀".repeat(40), 9)).length, 9);
    assert.ok(!/[\ud800-\udbff](?![\udc00-\udfff])/.test(shortened("😀".repeat(40), 9)));
    assert.ok(title("x".repeat(4096)).length <= 300);
});
