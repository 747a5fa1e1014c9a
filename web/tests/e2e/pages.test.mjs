// Each page opens in light and dark, without errors and without axe violations.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { axe, browser, fixture, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
const PAGES = ["explain", "requests", "threads", "io", "block", "files", "locks", "sched", "dns", "sql"];
let of;
let server;

before(async () => {
    if (skip) return;
    server = await serve(fixture("web-incident/trace.tar.zst"));
    of = await browser();
});
after(async () => {
    await of?.close();
    await server?.stop();
});

for (const scheme of ["light", "dark"]) {
    for (const name of PAGES) {
        test(`${name} in ${scheme}`, { skip }, async () => {
            const { page, wrong, context } = await open(of, server, name === "explain" ? "" : `?page=${name}`, { colorScheme: scheme });
            await settled(page);
            assert.equal(await page.locator("main h1").count(), 1);
            assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
            await picture(page, `${name}-${scheme}`);
            assert.deepEqual(await axe(page), []);
            assert.deepEqual(wrong, []);
            await context.close();
        });
    }
}

test("each tab of each page answers", { skip }, async () => {
    for (const name of PAGES) {
        const { page, wrong, context } = await open(of, server, `?page=${name}`);
        await settled(page);
        const tabs = await page.locator("main [role=tab]:not([disabled])").all();
        for (const tab of tabs) {
            await tab.click();
            await settled(page);
            assert.equal(await page.locator("main .problem").count(), 0, `${name}: ${await tab.innerText()}`);
        }
        assert.deepEqual(wrong, [], name);
        await context.close();
    }
});

test("a narrow window loses nothing", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "", { viewport: { width: 720, height: 900 } });
    await settled(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
    await picture(page, "explain-narrow");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("the token leaves the address bar, and without it nothing is shown", { skip }, async () => {
    const { page, context } = await open(of, server);
    await settled(page);
    assert.ok(!page.url().includes("token"), page.url());
    const other = await context.newPage();
    await other.goto(server.url.split("#")[0]);
    await other.locator(".problem").waitFor();
    assert.equal(await other.locator(".finding").count(), 0);
    await context.close();
});

test("a page can be saved as a picture, by its button and by a key", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=threads", { acceptDownloads: true });
    await settled(page);
    for (const save of [() => page.getByRole("button", { name: "PNG" }).click(), () => page.keyboard.press("Shift+P")]) {
        const waiting = page.waitForEvent("download");
        await save();
        const bytes = readFileSync(await (await waiting).path());
        assert.equal(bytes.subarray(1, 4).toString(), "PNG");
        assert.ok(bytes.readUInt32BE(16) > 1000 && bytes.readUInt32BE(20) > 400, "it is as large as the page");
        // An image of one colour would compress to almost nothing.
        assert.ok(bytes.length > 20_000, `${bytes.length} bytes`);
    }
    assert.deepEqual(wrong, []);
    await context.close();
});
