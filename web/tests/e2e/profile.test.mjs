// Threads of a profile: samples, gaps and locks on the timeline, thread dumps, and the way from a waiting thread
// to the culprit.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { hostileProfile } from "./hostile.mjs";
import { axe, browser, fixture, open, openFile, picture, run, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
const HANDLERS = "request-handler-[0-9]|network-thread-1";
/** Contains the longest wait for the lock of the log. */
const WINDOW = "&w=%2B11.4s..%2B12.2s";
let of;
let profile;
let both;
let folder;

before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-profile-"));
    profile = await serve(fixture("kafka/incident.jfr.gz"));
    both = await serve(fixture("kafka/incident.wsl.tar.zst"));
    of = await browser();
});
after(async () => {
    await of?.close();
    await profile?.stop();
    await both?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

/** Distinct colours of the chart. */
async function colours(page) {
    return page.evaluate(() => {
        const canvas = document.querySelector(".track-chart canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const found = new Map();
        for (let at = 0; at < data.length; at += 4) {
            const name = [data[at], data[at + 1], data[at + 2]].map((part) => part.toString(16).padStart(2, "0")).join("");
            found.set(`#${name}`, (found.get(`#${name}`) ?? 0) + 1);
        }
        return Object.fromEntries(found);
    });
}

async function drawn(page, colour) {
    await page.waitForFunction((wanted) => {
        const canvas = document.querySelector(".track-chart canvas");
        if (!canvas?.width) return false;
        const style = getComputedStyle(document.documentElement).getPropertyValue(wanted).trim();
        const parts = [1, 3, 5].map((at) => Number.parseInt(style.slice(at, at + 2), 16));
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        for (let at = 0; at < data.length; at += 4) if (parts.every((part, of) => data[at + of] === part)) return true;
        return false;
    }, colour);
}

for (const scheme of ["light", "dark"]) {
    test(`a profile alone has a time line, with what is inferred, in ${scheme}`, { skip }, async () => {
        const { page, wrong, context } = await open(of, profile, `?page=threads&tab=stacks-usage&threads=${encodeURIComponent(HANDLERS)}&links=on${WINDOW}`, { colorScheme: scheme });
        await settled(page);
        await drawn(page, "--inferred");
        await page.getByRole("button", { name: "all stacks at the cursor" }).click();
        await page.locator(".thread-dump .groups > li").first().waitFor();
        await settled(page);
        await picture(page, `profile-${scheme}`);
        assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
        assert.deepEqual(await axe(page), []);
        assert.deepEqual(wrong, []);
        await context.close();
    });
}

test("states of the kernel and samples of the profile stand beside each other", { skip }, async () => {
    const { page, wrong, context } = await open(of, both, `?page=threads&threads=${encodeURIComponent(HANDLERS)}`);
    await settled(page);
    // Recorded, and inferred.
    await drawn(page, "--blocked");
    await drawn(page, "--inferred");
    const legend = await page.locator(".lanes .legend").allInnerTexts();
    assert.match(legend.join(" "), /uninterruptible/);
    assert.match(legend.join(" "), /kernel wait \(inferred/);
    await picture(page, "profile-both");
    assert.ok(Object.keys(await colours(page)).length > 5);
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("by keyboard alone: from the thread that waits for the lock to the thread in sendfile", { skip }, async () => {
    const { page, wrong, context } = await open(of, profile, `?page=threads${WINDOW}`);
    await settled(page);
    const reach = async (what) => {
        for (let presses = 0; presses < 80; presses += 1) {
            await page.keyboard.press("Tab");
            if (await page.evaluate(what)) return;
        }
        assert.fail(`${what} cannot be reached by Tab`);
    };
    await reach(`document.activeElement?.placeholder === "threads (regex)"`);
    await page.keyboard.type(HANDLERS);
    await reach(`document.activeElement?.textContent === "lock holders"`);
    await page.keyboard.press("Enter");
    await settled(page);
    await reach(`document.activeElement?.classList.contains("chart-scroll")`);
    await drawn(page, "--inferred");
    // Down to a thread that waits for a lock with a known holder.
    const status = page.locator(".track-chart .chart-status");
    let text = "";
    for (let rows = 0; rows < 30 && !/held by/.test(text); rows += 1) {
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("n");
        text = await status.innerText();
    }
    assert.match(text, /request-handler-\d \d+, .*waits for .*, held by data-plane-kafka-request-handler-\d \d+ \((high|medium) confidence\)/);
    await page.keyboard.press("Enter");
    await page.locator(".thread-dump .one").waitFor();
    const holder = page.locator(".thread-dump .one");
    assert.match(await holder.locator("h3").innerText(), /request-handler-\d \d+: uninterruptible \(inferred\)/);
    assert.match(await holder.innerText(), /__GI_write/);
    assert.match(await page.locator(".chart-labels .active").innerText(), /request-handler/);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /network-thread/.test(document.querySelector(".thread-dump .one h3")?.textContent ?? ""));
    assert.match(await page.locator(".chart-labels .active").innerText(), /network-thread-1/);
    assert.match(await page.locator(".thread-dump .one .frames").innerText(), /sendfile64/);
    assert.match(await page.locator(".thread-dump .one").innerText(), /kernel wait, inferred/);
    await picture(page, "profile-culprit");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".thread-dump").count(), 0);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("`d` shows the stacks of all threads at the cursor, as the terminal does, and a group shows its threads", { skip }, async () => {
    const { page, wrong, context } = await open(of, profile, `?page=threads&w=%2B11.6s..%2B11.8s`);
    await settled(page);
    await page.locator(".chart-scroll").focus();
    await page.keyboard.press("d");
    await page.locator(".thread-dump .groups > li").first().waitFor();
    assert.match(page.url(), /dump=/);
    const at = new URL(page.url()).searchParams.get("dump");
    const printed = JSON.parse(run("threads", "dump", fixture("kafka/incident.jfr.gz"), "--at", at, "--json", "-n", "0"));
    const groups = printed.tables[0].rows.filter((row) => row.threads !== null);
    const shown = await page.locator(".thread-dump .groups > li > button > b").allInnerTexts();
    assert.deepEqual(shown.map(Number), groups.map((row) => row.threads));
    const first = page.locator(".thread-dump .groups > li > button").first();
    await first.focus();
    await page.keyboard.press("Enter");
    assert.equal(await first.getAttribute("aria-pressed"), "true");
    await page.locator(".chart-labels .chosen").first().waitFor();
    // The same as a table.
    await page.locator(".thread-dump").getByRole("button", { name: "table" }).click();
    await page.locator(".thread-dump [role=grid], .thread-dump table").first().waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a click on a sample shows its stack", { skip }, async () => {
    const { page, wrong, context } = await open(of, profile, `?page=threads&threads=network-thread-1&w=%2B11.6s..%2B11.7s`);
    await settled(page);
    await drawn(page, "--inferred");
    const label = await page.locator(".chart-labels .lane").last().boundingBox();
    const box = await page.locator(".track-chart .chart-surface").boundingBox();
    await page.mouse.click(box.x + box.width / 2, label.y + label.height / 2);
    await page.locator(".thread-dump .one .frames li").first().waitFor();
    assert.match(await page.locator(".thread-dump .one h3").innerText(), /network-thread-1/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("the flame graph is of time, says where samples mislead, and of chosen stacks only", { skip }, async () => {
    const { page, wrong, context } = await open(of, profile, `?page=threads&tab=stacks-usage&threads=network-thread-1${WINDOW}`);
    await settled(page);
    const flames = page.locator(".flames");
    await flames.locator(".flame canvas").waitFor();
    assert.equal(await flames.getByRole("button", { name: "time, including sampling gaps" }).getAttribute("aria-pressed"), "true");
    assert.match(await flames.getByRole("note").innerText(), /sendfile64 [\d.]+ ?% of samples, [\d.]+ ?% of time/);
    const amount = () => flames.locator(".flame header > span.quiet").last().innerText();
    const whole = await amount();
    await flames.getByPlaceholder("only stacks with (regex)").fill("sendfile");
    assert.match(await amount(), / of /);
    await flames.getByPlaceholder("only stacks with (regex)").fill("(");
    assert.match(await flames.innerText(), /not a valid regular expression/);
    await flames.getByPlaceholder("only stacks with (regex)").fill("");
    assert.equal(await amount(), whole);
    await picture(page, "profile-flame");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("pools are rows of their own, and the chart has its tables", { skip }, async () => {
    const { page, wrong, context } = await open(of, profile, "?page=threads&links=on");
    await settled(page);
    await page.getByRole("button", { name: "by pool" }).click();
    await page.locator(".chart-labels .group", { hasText: "data-plane-kafka-request-handler-N" }).first().waitFor();
    await page.locator(".lanes-tools").getByRole("button", { name: "table" }).click();
    await settled(page);
    const text = await page.locator(".lanes").innerText();
    for (const title of [/sampling gaps/, /by class/, /monitor/]) assert.match(text, title);
    await page.getByPlaceholder("threads (regex)").fill("(");
    assert.match(await page.locator(".lanes-tools").innerText(), /not a valid regular expression/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a report of a profile has the same time line, and stacks of the moments that matter", { skip }, async () => {
    const report = join(folder, "profile.html");
    run("export", "html", fixture("kafka/incident.jfr.gz"), "-o", report);
    assert.ok(statSync(report).size <= 4 << 20, `${statSync(report).size} bytes`);
    const { page, wrong, context } = await openFile(of, report, "#?page=threads&links=on");
    await settled(page);
    await drawn(page, "--running");
    await page.locator(".chart-scroll").focus();
    await page.keyboard.press("d");
    await page.locator(".thread-dump .groups > li").first().waitFor();
    assert.match(await page.locator(".thread-dump").innerText(), /the report includes stacks of selected times only/);
    await page.getByRole("tab", { name: "flame graph" }).click();
    await settled(page);
    await page.locator(".flame canvas").waitFor();
    await picture(page, "profile-report");
    assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
    assert.deepEqual(wrong, []);
    await context.close();
});

test("hidden names are in no report of a profile", { skip }, async () => {
    const report = join(folder, "hidden.html");
    run("export", "html", fixture("kafka/incident.jfr.gz"), "--redact=names", "-o", report);
    const { page, wrong, context } = await openFile(of, report, "#?page=threads");
    await settled(page);
    // Technical terms stay; names chosen by the application do not.
    assert.ok(!/ListenerName/.test(await page.locator("body").innerText()));
    assert.deepEqual(wrong, []);
    await context.close();
});

test("hostile names of a profile are text", { skip }, async () => {
    const path = join(folder, "hostile.json");
    writeFileSync(path, hostileProfile());
    const server = await serve(path);
    try {
        const { page, wrong, context } = await open(of, server, "?page=threads");
        await settled(page);
        await page.locator(".chart-scroll").focus();
        await page.keyboard.press("d");
        await page.locator(".thread-dump .groups > li").first().waitFor();
        for (const summary of await page.locator(".thread-dump summary").all()) await summary.click();
        await page.getByRole("tab", { name: "flame graph" }).click();
        await settled(page);
        assert.equal(await page.locator("img, iframe, main script, a[href^='javascript']").count(), 0);
        const text = await page.locator("body").innerText();
        assert.match(text, /onerror=alert/);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(text), "control characters are shown as they are");
        await picture(page, "hostile-profile");
        assert.deepEqual(wrong, []);
        await context.close();
    } finally {
        await server.stop();
    }
});
