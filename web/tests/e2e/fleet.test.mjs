// The Fleet page on a lake with pushed recordings: from a cell or a row to the recording and its cause.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { hostileTrace } from "./hostile.mjs";
import { axe, browser, fixture, open, picture, run, serve, settled, skipWithoutChromium } from "./harness.mjs";
import { skipFor } from "./needs.mjs";

const root = join(import.meta.dirname, "../../..");
process.env["PYTHONPATH"] ??= join(root, "python/src");

/** Why the tests cannot run here, or false. */
function missing() {
    const none = skipWithoutChromium();
    if (none) return none;
    const python = process.env["WHYSLOW_PYTHON"] || "python3";
    const done = spawnSync(python, ["-c", "import whyslow.fleet"], { encoding: "utf8" });
    const reason = done.stderr?.trim().split("\n").at(-1) ?? done.error;
    return skipFor("python", done.status !== 0 && `the Python package is not installed: ${reason}`);
}

const skip = missing();
/** The host that the fixture was recorded on. */
const HOST = "boardhost";
const TABS = ["heat", "deviations", "verdicts", "culprits", "shift", "rollout", "percentiles", "slowest", "hosts"];
let of;
let folder;
let lake;
let server;

before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-fleet-"));
    lake = join(folder, "the lake");
    const trace = fixture("web-incident/trace.tar.zst");
    const label = ["--label", "rack=r7"];
    run("fleet", "push", trace, lake, ...label);
    for (const host of ["web-2", "web-3", "web-10"]) run("fleet", "push", trace, lake, "--host", host, ...label);
    server = await serve("--lake", lake, trace);
    of = await browser();
});
after(async () => {
    await of?.close();
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

for (const [scheme, tabs] of [
    ["light", TABS],
    ["dark", ["heat", "slowest"]],
]) {
    test(`tabs answer in ${scheme}`, { skip }, async () => {
        const { page, wrong, context } = await open(of, server, "?page=fleet", { colorScheme: scheme });
        await settled(page);
        for (const tab of tabs) {
            await page.locator(`main [data-tab="${tab}"]`).click();
            await settled(page);
            assert.equal(await page.locator("main .problem").count(), 0, `${tab}: ${await page.locator("main").innerText()}`);
            assert.deepEqual(await axe(page), [], tab);
            await picture(page, `fleet-${tab}-${scheme}`);
        }
        assert.deepEqual(wrong, []);
        await context.close();
    });
}

test("the map is reached by keys, describes cells, and Enter leads to the slowest operations of one", { skip }, async () => {
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.locator(".host-map").waitFor();
    const names = await page.locator(".host-names > *").allInnerTexts();
    assert.deepEqual(names, [HOST, "web-2", "web-3", "web-10"], "hosts with equal values are sorted by name");
    await page.locator(".host-map [role=group]").focus();
    await page.keyboard.press("ArrowDown");
    // The writes are flushed in the eleventh second.
    for (let at = 0; at < 9; at += 1) await page.keyboard.press("ArrowRight");
    const description = await page.locator(".host-map .chart-status").innerText();
    assert.match(description, /^web-2, 2026-11-21 00:28:5\d: 99th percentile \d.*, operations \d/);
    await page.keyboard.press("Enter");
    await settled(page);
    const words = new URL(page.url()).searchParams;
    assert.equal(words.get("tab"), "slowest");
    assert.equal(words.get("hosts"), "web-2");
    assert.match(words.get("when"), /^2026-11-21T00:28:5\dZ\.\.2026-11-21T00:28:5\dZ$/);
    const rows = await page.locator("main tbody tr[role=row]").allInnerTexts();
    assert.ok(rows.length > 0 && rows.every((row) => row.includes("web-2") && row.includes("2026-11-21 00:28:5")), rows.join("\n"));
    assert.equal(await page.locator(".drawer h2").innerText(), "web-2");
    await page.goBack();
    await page.locator(".host-map").waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a click on a cell opens it, and a drag over a time narrows the window", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=fleet");
    await settled(page);
    const box = await page.locator(".host-map .chart-surface").boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    const window = new URL(page.url()).searchParams.get("when");
    assert.match(window, /^2026-11-21T00:28:5\dZ\.\.2026-11-21T00:28:5\dZ$/);
    assert.equal(await page.getByLabel("window", { exact: true }).inputValue(), window);
    await page.mouse.click(box.x + box.width * 0.5, box.y + 30);
    await page.locator(".drawer").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("hosts"), HOST);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("the table has what the map shows", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=fleet&hosts=web-3");
    await settled(page);
    assert.deepEqual(await page.locator(".host-names > *").allInnerTexts(), ["web-3"]);
    await page.getByRole("button", { name: "table" }).click();
    const rows = await page.locator("main tbody tr[role=row]").allInnerTexts();
    assert.ok(rows.length >= 14 && rows.every((row) => row.startsWith("web-3")), rows.join("\n"));
    assert.deepEqual(wrong, []);
    await context.close();
});

test("from a row to the commands that explain it, and to the recording that is open", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, `?page=fleet&tab=slowest&hosts=${HOST}&kind=io&for-op=sync`);
    await settled(page);
    await page.locator("main tbody tr[role=row]").first().click();
    const ways = await page.locator(".drawer .ways code").allInnerTexts();
    const recording = /find (\w{26}) /.exec(ways[0])?.[1];
    assert.ok(recording, ways[0]);
    assert.deepEqual(ways, [
        `whyslow fleet find ${recording} --lake '${lake}'`,
        `whyslow fleet fetch ${recording} --lake '${lake}'`,
        ways[2],
    ]);
    assert.match(ways[2], new RegExp(`^whyslow explain ${HOST}-${recording}\\.wsl\\.tar\\.zst -w op:\\d+$`));
    // The first command works as printed.
    assert.match(run(...ways[0].replaceAll("'", "").split(" ").slice(1, 5), lake), new RegExp(`host\\s+${HOST}`));
    assert.deepEqual(await axe(page), []);
    await page.locator(".drawer .actions .primary").click();
    await settled(page);
    const words = new URL(page.url()).searchParams;
    assert.equal(words.get("page"), null);
    assert.match(words.get("w"), /^\+\d/);
    assert.ok((await page.locator(".finding").count()) > 0);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a host without an open recording has commands, and no link", { skip }, async () => {
    const { page, context } = await open(of, server, "?page=fleet&tab=slowest&hosts=web-2");
    await settled(page);
    await page.locator("main tbody tr[role=row]").first().click();
    assert.equal(await page.locator(".drawer .ways code").count(), 3);
    assert.equal(await page.locator(".drawer .actions .primary").count(), 0);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".drawer").count(), 0);
    await context.close();
});

test("typed parameters are sent, are in the address, and in the command", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=fleet&tab=percentiles", { permissions: ["clipboard-read", "clipboard-write"] });
    await settled(page);
    await page.getByLabel("label", { exact: true }).fill("rack");
    await page.getByLabel("kind", { exact: true }).fill("block");
    await page.keyboard.press("Enter");
    await page.getByText("r7", { exact: true }).first().waitFor();
    await settled(page);
    const words = new URL(page.url()).searchParams;
    assert.deepEqual([words.get("label"), words.get("kind")], ["rack", "block"]);
    const rows = await page.locator("main tbody tr[role=row]").allInnerTexts();
    assert.ok(rows.length > 0 && rows.every((row) => /^r7\s+block\s/.test(row)), rows.join("\n"));
    await page.getByRole("button", { name: "copy command" }).click();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(command, `whyslow fleet percentiles --kind=block --label=rack --lake '${lake}'`);
    await page.getByRole("button", { name: "clear" }).click();
    await settled(page);
    assert.equal(new URL(page.url()).searchParams.get("label"), null);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("hosts with enough peers are compared", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=fleet&tab=deviations&all=true");
    await settled(page);
    const rows = await page.locator("main tbody tr[role=row]").allInnerTexts();
    assert.ok(rows.length >= 4 && rows.every((row) => /\bno\b/.test(row)), "equal hosts do not deviate");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("an invalid window is reported with a valid one", { skip }, async () => {
    const { page, context } = await open(of, server, "?page=fleet&tab=hosts&when=yesterday..");
    await page.locator("main .problem").waitFor();
    assert.match(await page.locator("main .problem").innerText(), /`yesterday` is not a time/);
    await context.close();
});

test("a time and hosts of which there is nothing are no error", { skip }, async () => {
    for (const query of ["tab=heat&hosts=no-such-*", "tab=heat&when=-1h..", "tab=slowest&hosts=no-such-*"]) {
        const { page, context } = await open(of, server, `?page=fleet&${query}`);
        await settled(page);
        const text = await page.locator("main").innerText();
        assert.match(text, /no recordings of these hosts and times were pushed|the lake stores only the slowest operations|no recordings/, query);
        await context.close();
    }
});

/** A response as the server would send it, about hosts that no lake here has. */
function answerOf(query, columns, rows) {
    const table = { name: query, title: query, form: "table", columns, rows, facts: { hosts: 1000, recordings: 1000 } };
    return JSON.stringify({ query: `fleet ${query}`, window: null, tables: [table], losses: [], caveats: [], next: null });
}

test("of a thousand hosts those in sight are drawn, the worst first, and all are reached by keys", { skip }, async () => {
    const begin = 1_772_366_400n * 1_000_000_000n;
    const host = (at) => (at === 7 ? "<img src=x onerror=f()>" : `web-${String(at).padStart(4, "0")}`);
    const column = (name, measure) => ({ name, title: name, measure });
    const hosts = Array.from({ length: 1000 }, (_, at) => ({ host: host(at), first_ts: 0, last_ts: 0 }));
    const cells = hosts.flatMap(({ host: name }, at) =>
        Array.from({ length: 60 }, (_, second) => ({ host: name, ts: 0, operations: 1 + at, dur_p99_ns: 1000 + at + (at === 500 && second === 30 ? 9e9 : 0), second })),
    );
    // Times have more digits than a double: they are inserted as text.
    const withTimes = (text) =>
        text
            .replaceAll('"first_ts":0,"last_ts":0', `"first_ts":${begin},"last_ts":${begin + 60_000_000_000n}`)
            .replace(/"ts":0,(.*?),"second":(\d+)/g, (_, rest, second) => `"ts":${begin + BigInt(second) * 1_000_000_000n},${rest}`);
    const { page, wrong, context } = await open(of, server);
    await settled(page);
    await page.route(/\/fleet\?.*query=(hosts|heat)/, (route) => {
        const isHeat = route.request().url().includes("query=heat");
        const text = isHeat
            ? answerOf("heat", [column("host", "text"), column("ts", "time_ns"), column("dur_p99_ns", "duration_ns")], cells)
            : answerOf("hosts", [column("host", "text")], hosts);
        return route.fulfill({ contentType: "application/json", body: withTimes(text) });
    });
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.locator(".host-map").waitFor();
    const names = page.locator(".host-names > *");
    assert.equal(await names.first().innerText(), "web-0500");
    assert.ok((await names.count()) <= 30, "rows out of view are not rendered");
    const map = page.locator(".host-map [role=group]");
    await map.focus();
    for (let at = 0; at < 50; at += 1) await map.press("PageDown");
    await map.press("End");
    assert.match(await page.locator(".chart-status").innerText(), /^web-0000, 2026-03-01 12:00:59: 99th percentile 1 us/);
    await page.locator(".host-names .active").waitFor();
    assert.ok((await names.allInnerTexts()).includes(host(7)), "the last rows are visible, and names are text");
    assert.equal(await page.locator("main img").count(), 0);
    await page.getByRole("button", { name: "by name" }).click();
    await page.getByText("web-0999", { exact: true }).waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
});

test("the command of the map and a picture of it have the cells that are shown", { skip }, async () => {
    const options = { permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true };
    const { page, wrong, context } = await open(of, server, "?page=fleet", options);
    await settled(page);
    await page.locator(".host-map").waitFor();
    await page.getByRole("button", { name: "copy command" }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `whyslow fleet heat --bin=1s --lake '${lake}'`);
    const waiting = page.waitForEvent("download");
    await page.keyboard.press("Shift+P");
    const saved = await waiting;
    assert.match(saved.suggestedFilename(), /the_lake\.png$/);
    const bytes = readFileSync(await saved.path());
    assert.ok(bytes.length > 20_000, `${bytes.length} bytes`);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("an empty lake is reported with the command that fills it", { skip }, async () => {
    const empty = await serve("--lake", join(folder, "empty"), fixture("web-incident/trace.tar.zst"));
    const { page, context } = await open(of, empty, "?page=fleet");
    await page.locator("main .problem").waitFor();
    assert.match(await page.locator("main .problem").innerText(), /does not exist[^]*whyslow fleet push/);
    await context.close();
    await empty.stop();
});

test("a server without a lake does not offer the page", { skip }, async () => {
    const plain = await serve(fixture("web-incident/trace.tar.zst"));
    const { page, wrong, context } = await open(of, plain);
    await settled(page);
    assert.equal(await page.getByRole("button", { name: "Fleet" }).count(), 0);
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    assert.equal(new URL(page.url()).searchParams.get("page"), null);
    await page.goto(`${plain.url.split("#")[0]}?page=fleet`);
    await page.getByText("This server has no lake").waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
    await plain.stop();
});

test("hostile names in a lake are text", { skip }, async () => {
    const trace = join(folder, "hostile.txt");
    writeFileSync(trace, hostileTrace());
    const odd = join(folder, "odd");
    run("fleet", "push", trace, odd, "--host", "odd-1");
    const other = await serve("--lake", odd, trace);
    const { page, wrong, context } = await open(of, other, "?page=fleet");
    await settled(page);
    for (const tab of TABS) {
        await page.locator(`main [data-tab="${tab}"]`).click();
        await settled(page);
        const row = page.locator("main tbody tr[role=row]").first();
        if (await row.count()) await row.click();
        assert.equal(await page.locator("img, main script, main iframe, a[href^='javascript']").count(), 0, tab);
        const text = await page.locator("body").innerText();
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(text), `${tab}: control characters are shown as they are`);
        if (tab === "slowest") assert.match(text, /<img src=x/);
        assert.deepEqual(wrong, [], tab);
    }
    await context.close();
    await other.stop();
});
