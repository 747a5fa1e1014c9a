// Incidents are reproduced on this machine, recorded, and opened: the culprit is at most three clicks away and can
// be reached by keyboard. Each workload reports its own ground truth.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { axe, browser, chromiumPath, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";
import { skipFor } from "./needs.mjs";

const run = join(import.meta.dirname, "../../../workloads/run.py");
/** Limit for load, import and cleanup. */
const PATIENCE_MS = 240_000;
const CANNOT = 77;

/** The process of a finding, as its sentence names it. */
const named = ({ comm, pid }) => ({ text: new RegExp(`^${comm} \\((?:.* )?pid ${pid}\\)$`), lane: `${comm} ${pid}` });

/** Name of each culprit, the lane that shows it, and the page. */
const INCIDENTS = [
    { name: "sync_storm", culprit: ({ guilty }) => named(guilty), page: "threads" },
    { name: "temp_files", culprit: ({ service }) => ({ text: new RegExp(`^${service.comm}(\\[${service.pid}/\\d+\\]| \\(.*pid ${service.pid}\\))$`) }), page: "files" },
    { name: "cold_sendfile", culprit: ({ guilty }) => named(guilty), page: "threads" },
    { name: "bad_disk", culprit: ({ guilty }) => ({ text: new RegExp(`^(Device |device )?${guilty}$`), lane: guilty }), page: "block" },
];

const KEYS = [
    ["r", "requests"],
    ["t", "threads"],
    ["i", "io"],
    ["b", "block"],
    ["f", "files"],
    ["l", "locks"],
    ["s", "sched"],
    ["n", "dns"],
    ["e", "explain"],
];

let of;
let folder;

before(async () => {
    folder = mkdtempSync(join(tmpdir(), "whyslow-made-"));
    if (chromiumPath()) of = await browser();
});
after(async () => {
    await of?.close();
    rmSync(folder, { recursive: true });
});

/** Why nothing can be recorded or shown here, or false if it can. */
function impossible() {
    return (
        skipWithoutChromium() ||
        skipFor("live", process.getuid?.() !== 0 && "only root may record") ||
        skipFor("live", !existsSync("/sys/kernel/btf/vmlinux") && "this kernel has no BTF")
    );
}

/** Reproduces and records an incident; returns its ground truth, or why it cannot run here. */
function made(name) {
    const why = impossible();
    if (why) return { skipped: why };
    const path = join(folder, `${name}.wsl`);
    const words = [run, name, "--record", path, "--whyslow", process.env["WHYSLOW"]];
    const done = spawnSync("python3", words, { encoding: "utf8", timeout: PATIENCE_MS });
    if (done.error) return { skipped: skipFor("python", `python3: ${done.error.message}`) };
    if (done.status === CANNOT) return { skipped: skipFor("tools", JSON.parse(done.stdout).skipped) };
    assert.equal(done.status, 0, done.stderr);
    return { path, truth: JSON.parse(done.stdout) };
}

for (const { name, culprit, page: wanted } of INCIDENTS) {
    test(`${name}: from the home page to the culprit`, async (context) => {
        const { skipped, path, truth } = made(name);
        if (skipped) return context.skip(skipped);
        const server = await serve(path);
        try {
            await byClick(server, culprit(truth), wanted, name);
            await byKeyboard(server, culprit(truth), wanted);
            await everyPage(server);
        } finally {
            await server.stop();
        }
    });
}

test("live: an incident shows up on the page that is open, and time goes on", async (context) => {
    const why = impossible();
    if (why) return context.skip(why);
    const floods = await noFloods();
    // A recorder of another test, which `@live` would follow, ends at some time.
    const server = await serve("@live:new");
    try {
        const { page, wrong, context: shown } = await open(of, server);
        await settled(page);
        const header = page.locator("header").first();
        assert.match(await header.innerText(), /@live .*live/s);
        const before = await header.innerText();
        const { status, output } = await incident("cold_sendfile");
        if (status === CANNOT) return context.skip(skipFor("tools", output));
        const culprit = page.locator("button.culprit").filter({ hasText: /^downloadd \(/ }).first();
        await shownWithin(culprit, page, PATIENCE_MS);
        assert.notEqual(await header.innerText(), before);
        await culprit.click();
        await settled(page);
        isAt(page, "threads");
        assert.deepEqual(wrong, []);
        await picture(page, "live");
        await shown.close();
    } finally {
        await server.stop();
        floods.end();
    }
});

/** Waits for an element; the error contains what the page shows instead. */
async function shownWithin(element, page, timeout) {
    await element.waitFor({ timeout }).catch(async (error) => {
        const [header, main] = [await page.locator("header").first().innerText(), await page.locator("main").innerText()];
        throw new Error(`${error.message}\nthe page:\n${header}\n${main}`);
    });
}

/**
 * Waits until no other test floods this machine with events; none does until `end`. In a flood, the live page
 * shows seconds instead of a minute. The lock is that of the live Rust tests (`no_floods`).
 */
async function noFloods() {
    const place = process.env["WHYSLOW_FLOOD_LOCKS"];
    if (!place) return { end: () => {} };
    const words = 'exec 8>"$0/flood.turn" 9>"$0/flood.lock" && flock 8 && flock -s 9 && exec 8>&- && echo locked && read -r _';
    const child = spawn("sh", ["-c", words, place], { stdio: ["pipe", "pipe", "inherit"] });
    await new Promise((locked, failed) => {
        child.stdout.once("data", locked);
        child.once("exit", (code) => failed(new Error(`cannot lock ${place}: exit status ${code}`)));
    });
    return { end: () => child.stdin.end("\n") };
}

/** Opens all pages by their keys, in light and dark. */
async function everyPage(server) {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    for (const [key, name] of KEYS) {
        await page.keyboard.press("g");
        await page.keyboard.press(key);
        await page.waitForURL((url) => url.searchParams.get("page") === name || name === "explain");
        for (const colorScheme of ["light", "dark"]) {
            await page.emulateMedia({ colorScheme });
            await settled(page);
            assert.equal(await page.locator(".problem").count(), 0, `${name}: ${await page.locator("main").innerText()}`);
            assert.deepEqual(await axe(page), [], `${name} in ${colorScheme}`);
        }
    }
    assert.deepEqual(wrong, []);
    await context.close();
}

/** Runs an incident asynchronously, so that the page keeps updating. */
async function incident(name) {
    const child = spawn("python3", [run, name], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (piece) => (output += piece));
    const status = await new Promise((ended) => child.on("exit", ended));
    return { status, output };
}

const isAt = (page, wanted) => assert.equal(new URL(page.url()).searchParams.get("page"), wanted);

/** One click on the culprit's name on the home page shows what it did. */
async function byClick(server, name, wanted, picturedAs) {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    const culprit = page.locator("button.culprit").filter({ hasText: name.text }).first();
    await culprit.click();
    await settled(page);
    isAt(page, wanted);
    const left = await culprit.count();
    assert.equal(left, 0, "another page is shown");
    await isShown(page, name, wanted);
    assert.equal(await page.locator(".problem").count(), 0, await page.locator("main").innerText());
    assert.deepEqual(await axe(page), []);
    await picture(page, `culprit-${picturedAs}`);
    assert.deepEqual(wrong, []);
    await context.close();
}

/** Checks for the marked lane of the culprit, or a row with what it did. */
async function isShown(page, name, wanted) {
    if (wanted === "files") {
        const row = await page.locator("main table tbody tr").first().innerText();
        assert.match(row, /<n>\.txt\s/, row);
        return;
    }
    const active = (await page.locator(".chart-labels .active").innerText()).replace(/\s+/g, " ");
    assert.ok(active.includes(name.lane), `${active} is not ${name.lane}`);
    if (wanted !== "block") return;
    assert.ok((await page.locator(".maps canvas").count()) >= 6, "the other devices are shown next to it");
}

/** Reaches the culprit with Tab and Enter only. */
async function byKeyboard(server, name, wanted) {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    const focused = () => page.evaluate(() => (document.activeElement?.classList.contains("culprit") ? document.activeElement.textContent : ""));
    const isIt = (text) => name.text.test(text);
    let presses = 0;
    for (; presses < 200 && !isIt(await focused()); presses += 1) await page.keyboard.press("Tab");
    assert.ok(isIt(await focused()), `not reached after ${presses} Tab presses`);
    await page.keyboard.press("Enter");
    await settled(page);
    isAt(page, wanted);
    assert.deepEqual(wrong, []);
    await context.close();
}
