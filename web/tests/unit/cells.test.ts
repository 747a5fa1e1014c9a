import assert from "node:assert/strict";
import { test } from "node:test";

import { compareCells, shownCell, toCsv, toTsv } from "../../src/cells";
import type { Column } from "../../src/types";
import { bytes, duration, ratio } from "../../src/units";

const clock = { begin: 0n, length: 1, zone: null };
const column = (name: string, measure: Column["measure"]): Column => ({ name, title: name, measure });

test("quantities have three digits and a unit", () => {
    const cases: readonly (readonly [string, string])[] = [
        [duration(158092790), "158 ms"],
        [duration(0), "0 ns"],
        [duration(999), "999 ns"],
        [duration(1500), "1.50 us"],
        [duration(999_999_999), "1.00 s"],
        [duration(61e9), "61 s"],
        [bytes(0), "0 B"],
        [bytes(1023), "1023 B"],
        [bytes(1536), "1.50 KiB"],
        [bytes(5 * 1024 ** 4), "5 TiB"],
        [ratio(0.9999), "99.9 %"],
        [ratio(1), "100 %"],
        [ratio(0.00001), "< 0.1 %"],
        [ratio(0), "0.0 %"],
    ];
    for (const [shown, wanted] of cases) assert.equal(shown, wanted);
});

test("order is by value, what is unknown comes last, and digits beyond doubles count", () => {
    const sorted = (cells: (string | number | null)[], sign: number) =>
        [...cells].sort((a, b) => compareCells(a, b, "duration_ns", sign));
    assert.deepEqual(sorted([5, null, 1, 3], 1), [1, 3, 5, null]);
    assert.deepEqual(sorted([5, null, 1, 3], -1), [5, 3, 1, null]);
    assert.deepEqual(sorted(["9007199254740994", "9007199254740993"], 1), ["9007199254740993", "9007199254740994"]);
});

test("copies are exact, and a spreadsheet runs nothing of them", () => {
    const columns = [column("path", "path"), column("dur_ns", "duration_ns")];
    const rows = [{ path: '=cmd|"x"\t\n', dur_ns: 12345 }];
    assert.equal(toTsv(columns, rows), 'path\tdur_ns\n=cmd|"x"\\t\\n\t12345\n');
    assert.equal(toCsv(columns, rows), "path,dur_ns\r\n\"'=cmd|\"\"x\"\"\t\n\",12345\r\n");
});

test("names are shown so that all of them is seen", () => {
    assert.equal(shownCell("a\u202eb", column("comm", "text"), clock), "a\\u{202e}b");
    assert.equal(shownCell(12345, column("pid", "count"), clock), "12345");
    assert.equal(shownCell(12345, column("calls", "count"), clock), "12\u202f345");
    assert.equal(shownCell(null, column("pid", "count"), clock), "");
});
