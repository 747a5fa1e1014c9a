// A report is one file that shows its findings from the disk, without a network and without whyslow.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { hostileTrace } from "./hostile.mjs";
import { axe, browser, fixture, openFile, picture, run, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
const PAGES = ["explain", "threads", "io", "block", "files", "sched"];
/** A report is sent by mail. */
const BYTES_MAX = 2 << 20;
let of;
let folder;
let report;

before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-report-"));
    report = join(folder, "incident.html");
    run("export", "html", fixture("web-incident/trace.tar.zst"), "-o", report);
    of = await browser();
});
after(async () => {
    await of?.close();
    if (folder) rmSync(folder, { recursive: true });
});

test("the finding, its culprit and the chart of both, from the disk and offline", { skip }, async () => {
    assert.ok(statSync(report).size <= BYTES_MAX, `${statSync(report).size} bytes`);
    const { page, wrong, context } = await openFile(of, report);
    await settled(page);
    const finding = page.locator(".finding").first();
    assert.match(await finding.locator(".why").innerText(), /sync \(pid 339\)/);
    assert.match(await finding.locator(".details .verdict").textContent(), /request \d+ by apache2\[243\] took 161 ms .*: 158 ms of it .* sync\[339\]/s);
    await finding.locator("button.culprit").click();
    await settled(page);
    assert.match(page.url(), /page=threads/);
    assert.match(await page.locator(".chart-labels .active").innerText(), /sync 339/);
    await drawn(page);
    await picture(page, "report-threads");
    assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a row is explained by its own finding, and not by that of another row", { skip }, async () => {
    const { page, wrong, context } = await openFile(of, report);
    await settled(page);
    // Of the victims, the request is the target of the finding. The report explains the call, too.
    await page.locator(".finding").first().locator(".timeline .role-victim").filter({ hasText: "openat" }).locator(".evidence").click();
    await settled(page);
    const drawer = page.locator(".drawer");
    assert.match(page.url(), /sel=op:\d+/);
    assert.match(await drawer.locator(".finding .sentences").first().innerText(), /apache2 \(pid 243\): .*openat\(\) took 158 ms/);
    await page.goto(page.url().replace(/sel=op:\d+/, "sel=op:1"));
    await page.reload();
    await settled(page);
    assert.match(await drawer.locator(".problem").innerText(), /not included in this report/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("its charts pan and zoom", { skip }, async () => {
    const { page, wrong, context } = await openFile(of, report);
    await settled(page);
    await page.locator(".finding").first().getByText("show on the timeline").click();
    await settled(page);
    await drawn(page);
    const before = page.url();
    await page.locator("main canvas").first().focus();
    for (const key of ["w", "w", "d", "s", "a"]) {
        await page.keyboard.press(key);
        await page.waitForTimeout(400);
        await drawn(page);
    }
    await settled(page);
    assert.notEqual(page.url(), before);
    assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
    assert.deepEqual(wrong, []);
    await context.close();
});

test("devices stand beside each other in it", { skip }, async () => {
    const { page, wrong, context } = await openFile(of, report, "#?page=block&tab=block-heat");
    await settled(page);
    assert.ok((await page.locator(".maps canvas").count()) >= 3);
    assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
    await picture(page, "report-heat");
    assert.deepEqual(wrong, []);
    await context.close();
});

for (const scheme of ["light", "dark"]) {
    test(`every page of it opens in ${scheme}`, { skip }, async () => {
        for (const name of PAGES) {
            const { page, wrong, context } = await openFile(of, report, name === "explain" ? "" : `#?page=${name}`, { colorScheme: scheme });
            await settled(page);
            assert.equal(await page.locator("main h1").count(), 1, name);
            assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
            assert.deepEqual(await axe(page), [], name);
            assert.deepEqual(wrong, [], name);
            await context.close();
        }
    });
}

test("without scripts it says what was found", { skip }, async () => {
    const { page, wrong, context } = await openFile(of, report, "", { javaScriptEnabled: false });
    assert.match(await page.locator("noscript").first().innerText(), /sync \(pid 339\)/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("hostile names are text in it", { skip }, async () => {
    const trace = join(folder, "hostile.txt");
    writeFileSync(trace, hostileTrace());
    const output = join(folder, "hostile.html");
    run("export", "html", trace, "-o", output);
    const text = readFileSync(output, "utf8");
    assert.ok(!text.includes("alert(2)</script>"));
    for (const name of PAGES) {
        const { page, wrong, context } = await openFile(of, output, `#?page=${name}`);
        await settled(page);
        assert.equal(await page.locator("main img, main script, main iframe, main a[href^='javascript']").count(), 0, name);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(await page.locator("body").innerText()), name);
        assert.deepEqual(wrong, [], name);
        await context.close();
    }
});

/** Checks that a chart is painted, by its number of colours. */
async function drawn(page) {
    const colours = await page.evaluate(() => {
        const found = new Set();
        for (const canvas of document.querySelectorAll("main canvas")) {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            for (let at = 0; at < data.length; at += 4 * 97) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
        }
        return found.size;
    });
    assert.ok(colours > 3, `only ${colours} colours in the charts`);
}
