import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";

import { openIsland } from "../../src/island";

const EXPLANATION = {
    findings: [{ target: { id: "op:17" } }, { target: { id: "request:4" } }],
    observations: [{ summary: "log flood" }],
    patterns: [],
    fine: [],
    caveats: [],
};

async function get(path: string): Promise<{ readonly findings: readonly { readonly target: { readonly id: string } }[]; readonly caveats: readonly string[] }> {
    const contents = { answers: { explain: EXPLANATION }, tiles: {}, version: "1", window: null };
    const text = gzipSync(JSON.stringify(contents)).toString("base64");
    const island = await openIsland({ textContent: text } as HTMLElement);
    return JSON.parse(new TextDecoder().decode(await island.get(path))) as never;
}

test("a report explains a row with the finding about it", async () => {
    assert.deepEqual((await get("explain?rec=a&w=op%3A17")).findings, [{ target: { id: "op:17" } }]);
    assert.deepEqual((await get("explain?rec=a&request=4")).findings, [{ target: { id: "request:4" } }]);
});

test("a report does not explain a row with the finding about another one", async () => {
    await assert.rejects(get("explain?rec=a&w=op%3A18"), /not included in this report/);
    await assert.rejects(get("explain?rec=a&w=%2B1s..%2B2s&tid=5"), /not included in this report/);
});

test("another window has the findings of the report, with a caveat", async () => {
    const answer = await get("explain?rec=a&w=%2B1s..%2B2s");
    assert.equal(answer.findings.length, 2);
    assert.match(answer.caveats[0] ?? "", /does not include this window alone/);
});
