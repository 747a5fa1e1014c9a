// Findings that continue in recordings of other hosts: selected on the page, with the host of each step.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { axe, browser, fixture, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
let of;
let server;

before(async () => {
    if (skip) return;
    server = await serve(...["cli", "app", "db"].map((name) => fixture(`across/${name}.txt`)));
    of = await browser();
});
after(async () => {
    await of?.close();
    await server?.stop();
});

test("a culprit on another host is named with the host, once that host is selected", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?rec=cli.txt");
    await settled(page);
    assert.equal(await page.locator(".badge.host").count(), 0);
    for (const host of ["app", "db"]) {
        await page.getByLabel(`${host} (${host}.txt)`).check();
        await settled(page);
    }
    assert.match(page.url(), /across=app\.txt(,|%2C)db\.txt/);
    const verdict = page.locator(".finding .details .verdict").first();
    assert.match(await verdict.textContent(), /vacuum.* \(on host db, where session\[30\] served the request\)/);
    const badges = await page.locator(".ladder .badge.host").allTextContents();
    assert.deepEqual(badges, ["app", "db", "db"]);
    assert.match(await page.locator(".parts tr.culprit").first().textContent(), /db\s+vacuum/);
    assert.match(await page.locator(".more").first().textContent(), /the clock of app was 3\.\d+ s ahead/);
    // Evidence in other recordings cannot be opened here.
    assert.equal(await page.locator(".parts tr.culprit td:last-child button").count(), 0);
    assert.deepEqual(await axe(page), []);
    await picture(page, "across");
    assert.deepEqual(wrong, []);
    await context.close();
});
