import assert from "node:assert/strict";
import { test } from "node:test";

import { parseExact } from "../../src/exact";

const check = (text: string, wanted: unknown) => assert.deepEqual(parseExact(text), wanted, text);

test("whole numbers beyond 2^53 keep every digit", () => {
    check('{"ts_ns":1795220934677106813,"dur_ns":594644119}', { ts_ns: "1795220934677106813", dur_ns: 594644119 });
    check("[-1795220934677106813]", ["-1795220934677106813"]);
    check("[9007199254740993]", ["9007199254740993"]);
});

test("fractions and exponents are numbers, however long", () => {
    check('{"share":0.9991691208688265,"x":1.5e-7}', { share: 0.9991691208688265, x: 1.5e-7 });
    check("[12345678901234567.25]", [12345678901234567.25]);
    check("[1e300, -0.12345678901234567890]", [1e300, -0.12345678901234568]);
});

test("digits inside of strings stay strings, whatever stands around them", () => {
    check('["1795220934677106813"]', ["1795220934677106813"]);
    check('{"path":"/a\\":1795220934677106813,\\"b"}', { path: '/a":1795220934677106813,"b' });
    check('["\\\\",1795220934677106813]', ["\\", "1795220934677106813"]);
});
