import assert from "node:assert/strict";
import { test } from "node:test";

import { runsOf } from "../../src/components/waterfall";

test("equal letters beside each other are one run", () => {
    const shown = (letters: string) => runsOf(letters).map((run) => `${run.letter}${run.from}+${run.count}`).join(" ");
    assert.equal(shown("  RRrS"), " 0+2 R2+2 r4+1 S5+1");
    assert.equal(shown(""), "");
});
