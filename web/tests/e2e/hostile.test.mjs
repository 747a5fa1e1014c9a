// Names in a recording are chosen by the recorded programs: every page must show them as plain text.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { hostileTrace } from "./hostile.mjs";
import { browser, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
let of;
let server;
let folder;

before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-hostile-"));
    const path = join(folder, "hostile.txt");
    writeFileSync(path, hostileTrace());
    server = await serve(path);
    of = await browser();
});
after(async () => {
    await of?.close();
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

test("hostile names are text on every page and in every tab", { skip }, async () => {
    for (const name of ["explain", "threads", "io", "files", "sched"]) {
        const { page, wrong, context } = await open(of, server, `?page=${name}`);
        await settled(page);
        const tabs = await page.locator("main [role=tab]:not([disabled])").all();
        for (const tab of tabs.length ? tabs : [null]) {
            await tab?.click();
            await settled(page);
            assert.equal(await page.locator("main img, main script, main iframe, main a[href^='javascript']").count(), 0, name);
            const text = await page.locator("body").innerText();
            assert.ok(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(text), `${name}: control characters are shown as they are`);
        }
        await picture(page, `hostile-${name}`);
        assert.deepEqual(wrong, [], name);
        await context.close();
    }
});

test("hostile names are text in search results and in the drawer", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=io&tab=io-top");
    await settled(page);
    await page.locator("tbody tr[role=row]").first().click();
    await page.locator(".drawer").waitFor();
    await page.keyboard.press("/");
    await page.locator("dialog input:focus").waitFor();
    await page.keyboard.type("alert");
    await page.locator("[role=option]").first().waitFor();
    assert.equal(await page.locator("img, iframe").count(), 0);
    assert.deepEqual(wrong, []);
    await context.close();
});
