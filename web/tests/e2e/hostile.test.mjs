// Names in a recording belong to whoever ran a program there: on no page may they be anything but text.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { browser, chromiumPath, open, picture, serve, settled } from "./harness.mjs";

const skip = chromiumPath() ? false : "chromium is not installed";
const NAMES = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a\u202eexe.txt", "\\x1b[31mred\\x07", "javascript:alert(3)", `/${"long/".repeat(800)}end`];
let of;
let server;
let folder;

function trace() {
    const lines = ["whyslow-text 1"];
    NAMES.forEach((name, at) => {
        const quoted = `"${name}"`;
        const comm = `"${name.startsWith("\\") ? name : name.slice(0, 15)}"`;
        const tid = 100 + at;
        const time = (ms) => `${1 + at}.${String(ms).padStart(3, "0")}000000`;
        lines.push(
            `${time(0)} [0] sched_switch prev=0 next=${tid} prev_state=R next_comm=${comm}`,
            `${time(1)} [0] (tid=${tid} pid=${tid} comm=${comm}) syscall_enter name=openat filename=${quoted}`,
            `${time(2)} [0] (tid=${tid} comm=${comm}) sched_switch prev=${tid} prev_comm=${comm} prev_state=D next=0`,
            `${time(402)} [0] sched_switch prev=0 prev_state=R next=${tid} next_comm=${comm}`,
            `${time(402)} [0] (tid=${tid} comm=${comm}) stack kind=back since=${time(2)} state=D cpu=0 kernel=${quoted} user=${quoted}`,
            `${time(403)} [0] (tid=${tid} comm=${comm}) syscall_exit name=openat ret=3`,
            `${time(404)} [0] (tid=${tid} comm=${comm}) sched_switch prev=${tid} prev_comm=${comm} prev_state=S next=0`,
        );
    });
    return `${lines.join("\n")}\n`;
}

before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "whyslow-hostile-"));
    const path = join(folder, "hostile.txt");
    writeFileSync(path, trace());
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
