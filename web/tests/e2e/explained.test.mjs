// Any selected row can be explained: the address keeps it, and Back undoes it. Pages without events show whether
// they were recorded.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { axe, browser, fixture, open, picture, serve, settled, skipWithoutChromium } from "./harness.mjs";

const skip = skipWithoutChromium();
let of;
let server;
let folder;

/** A thread that waits for its own read. */
const TRACE = `whyslow-text 1
1.000000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=victim
1.001000 [0] (tid=10 pid=10 comm=victim) syscall_enter name=pread64 fd=3 count=4096
1.002000 [0] (tid=10) block_getrq dev=8:0 sector=100 sectors=8 rwbs=R
1.003000 [0] (tid=10) block_rq_issue dev=8:0 sector=100 sectors=8 rwbs=R
1.004000 [0] (tid=10) sched_switch prev=10 prev_state=D next=0
1.204000 [0] irq_enter kind=hard nr=19 name=virtio
1.204000 [0] block_rq_complete dev=8:0 sector=100 sectors=8 rwbs=R error=0
1.204000 [0] sched_waking tid=10
1.204100 [0] irq_exit kind=hard nr=19 ret=1
1.204200 [0] sched_switch prev=0 prev_state=R next=10
1.210000 [0] (tid=10) syscall_exit name=pread64 ret=4096
`;
before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-explained-"));
    writeFileSync(join(folder, "read.txt"), TRACE);
    server = await serve(fixture("web-incident/trace.tar.zst"), join(folder, "read.txt"), fixture("requests/nginx-timed.log"));
    of = await browser();
});
after(async () => {
    await of?.close();
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
});

/** Tabs whose first row can be explained, and its id. */
const ROWS = [
    ["read.txt", "io", "io-top", /^op:/],
    ["read.txt", "block", "block-top", /^block:/],
    ["read.txt", "threads", "states-top", /^state:/],
    ["read.txt", "sched", "sched-top", /^state:/],
    ["nginx-timed.log", "requests", "requests-top", /^request:/],
];

for (const [recording, name, tab, id] of ROWS) {
    test(`${name}: the first row is explained, and Back undoes it`, { skip }, async () => {
        const { page, wrong, context } = await open(of, server, `?rec=${recording}&page=${name}&tab=${tab}`);
        await settled(page);
        await page.locator("main .table tbody tr[role=row]").first().click();
        const drawer = page.locator(".drawer");
        assert.match(await drawer.locator("h2").first().innerText(), id);
        assert.equal(await drawer.getByRole("tab", { name: "explain" }).isEnabled(), true);
        assert.equal(await drawer.locator(".finding").count(), 0);
        await drawer.getByRole("button", { name: "Explain", exact: true }).click();
        await drawer.locator(".finding .why").waitFor();
        assert.match(page.url(), /detail=explain/);
        assert.deepEqual(await axe(page), []);
        await picture(page, `explained-${name}`);
        // The address is enough.
        await page.reload();
        await settled(page);
        await drawer.locator(".finding .why").waitFor();
        await page.goBack();
        assert.doesNotMatch(page.url(), /detail=explain/);
        assert.match(page.url(), /sel=/);
        assert.deepEqual(wrong, []);
        await context.close();
    });
}

test("a state clicked on its lane is explained by a key", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?rec=read.txt&page=threads&at=10");
    await settled(page);
    const surface = await page.locator(".track-chart .chart-surface").boundingBox();
    const lane = await page.locator(".chart-labels .active").boundingBox();
    await page.mouse.click(surface.x + surface.width / 2, lane.y + 8);
    const drawer = page.locator(".drawer");
    await drawer.locator("dl.item").waitFor();
    await page.keyboard.press("e");
    await drawer.locator(".finding .why").waitFor();
    assert.match(await drawer.locator(".finding .why").innerText(), /victim \(pid 10\)/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a page of an unrecorded kind opens, with the command that records it", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?rec=read.txt");
    await settled(page);
    const link = page.locator(".rail button").filter({ hasText: "Locks" });
    assert.match(await link.getAttribute("class"), /missing/);
    assert.match(await link.innerText(), /not recorded|cannot tell/);
    await link.click();
    await settled(page);
    assert.match(page.url(), /page=locks/);
    assert.match(await page.locator("main .why-none").innerText(), /recorded/);
    assert.match(await page.locator("main .why-none code").innerText(), /^whyslow record --what \+locks$/);
    assert.equal(await page.locator("main .problem").count(), 0);
    assert.deepEqual(await axe(page), []);
    await picture(page, "not-recorded");
    assert.deepEqual(wrong, []);
    await context.close();
});

test("a page of recorded events shows their number", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?rec=read.txt");
    await settled(page);
    const link = page.locator(".rail button").filter({ hasText: "Block devices" });
    assert.equal(await link.locator(".count").innerText(), "1");
    assert.doesNotMatch((await link.getAttribute("class")) ?? "", /missing/);
    assert.deepEqual(wrong, []);
    await context.close();
});

test("filters are named in words", { skip }, async () => {
    const { page, wrong, context } = await open(of, server, "?page=io&min=5ms&errors=true");
    await settled(page);
    const chips = page.locator(".chips");
    assert.match(await chips.innerText(), /duration at least 5ms/);
    assert.match(await chips.innerText(), /only errors/);
    assert.deepEqual(wrong, []);
    await context.close();
});
