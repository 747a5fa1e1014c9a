// From the home page to the culprit: in three clicks, and by keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browser, fixture, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
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

test("the finding names the culprit, and one click shows its thread", { skip }, async () => {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    const finding = page.locator(".finding").first();
    assert.match(await finding.locator(".why").innerText(), /sync \(pid 339\)/);
    assert.match(await finding.locator(".sentences").first().innerText(), /WHO\s+.*apache2 \(pid 243\): request \d+ took 161 ms[^]*openat\(\) of apache2 \(pid 243\) \(158 ms\)[^]*SURE/);
    // The evidence is folded.
    const verdict = finding.locator(".details .verdict");
    assert.equal(await verdict.isVisible(), false);
    await finding.getByText("Evidence and details").click();
    assert.match(await verdict.innerText(), /request \d+ by apache2\[243\] took 161 ms .*: 158 ms of it/);
    assert.match(await verdict.innerText(), /sync\[339\]/);
    await finding.locator("button.culprit").click();
    await settled(page);
    assert.match(page.url(), /page=threads/);
    assert.match(await page.locator(".chart-labels .active").innerText(), /sync 339/);
    await picture(page, "culprit");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("evidence is one click away, with its window", { skip }, async () => {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    const finding = page.locator(".finding").first();
    // The culprit's call, from the drawing.
    await finding.locator(".timeline .role-culprit .evidence").click();
    await settled(page);
    assert.match(page.url(), /page=io/);
    assert.match(page.url(), /sel=op/);
    assert.match(page.url(), /w=/);
    await page.goBack();
    await settled(page);
    assert.equal(await page.locator(".drawer").count(), 0, "Back closes the selection");
    await finding.getByText("Evidence and details").click();
    await finding.locator(".ladder .evidence").filter({ hasText: "block:" }).first().click();
    await settled(page);
    assert.match(page.url(), /page=block/);
    assert.match(page.url(), /sel=block/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("the drawing has the culprit first, on one axis", { skip }, async () => {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    const rows = page.locator(".finding").first().locator(".timeline > ol > li");
    assert.ok((await rows.count()) >= 2);
    assert.match(await rows.first().innerText(), /sync/);
    const boxes = await rows.locator(".timeline-track").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
    assert.equal(new Set(boxes.map((box) => Math.round(box.left))).size, 1, "the bars share an axis");
    const scale = await page.locator(".timeline-scale").first().boundingBox();
    assert.ok(Math.abs(scale.x - boxes[0].left) <= 1, "the labels belong to that axis");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("by keyboard alone: from the home page to the culprit's thread, and its call", { skip }, async () => {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(() => document.activeElement?.classList.contains("culprit"))) break;
    }
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "sync (pid 339)");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await page.locator(".chart-labels .active").innerText(), /sync 339/);
    await page.keyboard.press("g");
    await page.keyboard.press("i");
    await settled(page);
    assert.match(page.url(), /page=io/);
    await page.keyboard.press("/");
    await page.locator("dialog input:focus").waitFor();
    await page.keyboard.type("apache2");
    await page.locator("[role=option]").first().waitFor();
    for (let presses = 0; presses < 30; presses += 1) {
        if (/^thread/.test(await page.locator("[role=option][aria-selected=true]").innerText())) break;
        await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(page.url(), /page=threads/);
    assert.match(page.url(), /tid=/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a box on the time line is explained", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=threads&w=%2B9.2s..%2B9.6s&at=243");
    await settled(page);
    const box = await page.locator(".track-chart .chart-surface").boundingBox();
    const label = await page.locator(".chart-labels .active").boundingBox();
    const y = label.y + label.height / 2;
    await page.mouse.move(box.x + box.width * 0.28, y - 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, y);
    await page.mouse.move(box.x + box.width * 0.68, y + 2);
    await page.mouse.up();
    await page.getByRole("button", { name: "explain this box" }).click();
    await settled(page);
    assert.match(await page.locator(".box .why").first().innerText(), /sync \(pid 339\)/);
    await picture(page, "box");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("zoom and pan by keys change the address, and Back undoes them", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=threads");
    await settled(page);
    const chart = page.locator(".chart-scroll");
    await chart.focus();
    await page.keyboard.press("w");
    await settled(page);
    const zoomed = page.url();
    assert.match(zoomed, /w=/);
    await page.keyboard.press("d");
    assert.notEqual(page.url(), zoomed);
    await page.goBack();
    assert.equal(page.url(), zoomed);
    assert.deepEqual(wrong, []);
    await context.close();
});
