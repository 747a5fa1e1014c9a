// Measures pages, frames and tiles: `node bench/measure.mjs RECORDING`, with the program in WHYSLOW.
// Prints one JSON document; has no pass or fail criteria.
import { readFileSync } from "node:fs";

import { browser, open, serve } from "../tests/e2e/harness.mjs";

const [, , recording] = process.argv;
const SIZE = { width: 1920, height: 1080 };
const LANES = 40;
/** Interval between key presses and wheel turns, ms. */
const STEP_MS = 60;
const STEPS = 120;
const READY_MAX_MS = 20 * 60_000;

const server = await serve(recording);
const [base, token] = server.url.split("#token=");
const headers = { authorization: `Bearer ${token}`, accept: "application/vnd.apache.arrow.stream" };
const query = (path) => fetch(`${base}api/v1/${path}`, { headers: { ...headers, accept: "application/json" } }).then((answer) => answer.json());

const about = await untilReady();
const tiles = await tileTimes(about);
const of = await browser();
const pages = {};
for (const [name, parameters, sign] of [
    ["threads", "?page=threads", "main canvas"],
    ["home", "", ".finding, main .none"],
]) {
    const begin = performance.now();
    const { page, context } = await open(of, server, parameters, { viewport: SIZE });
    await page.locator(sign).first().waitFor({ timeout: READY_MAX_MS });
    if (name === "threads") await page.waitForFunction(isPainted, undefined, { polling: 20 });
    pages[name] = performance.now() - begin;
    await context.close();
}
const frames = await frameTimes();
await of.close();
const anon = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"));
await server.stop();
const rows = Object.values(about.rows).reduce((sum, count) => sum + count, 0);
console.log(JSON.stringify({ rows, pages_ms: pages, frames, tiles, private_mib: Number(anon[1]) / 1024 }));

async function untilReady() {
    const end = performance.now() + READY_MAX_MS;
    for (;;) {
        const { recordings } = await query("recordings");
        if (recordings[0].tiles.state === "ready") return recordings[0];
        if (recordings[0].tiles.state === "failed" || performance.now() > end) throw new Error(JSON.stringify(recordings[0].tiles));
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
}

/** Fetches a tile of each track at each level, at several places of the recording, without a browser. */
async function tileTimes({ begin_ns, end_ns, digest }) {
    const total = Number(BigInt(end_ns) - BigInt(begin_ns));
    const top = Math.ceil(Math.log2(total / 1024));
    const times = [];
    for (const track of ["states", "calls", "cpus", "block"]) {
        const listed = await query(`tracks?track=${track === "calls" ? "states" : track}&limit=2000`);
        const all = listed.tracks[0].lanes.map((lane) => lane.lane);
        if (!all.length) continue;
        for (let level = Math.max(top - 16, 0); level <= top; level += 1) {
            const count = Math.ceil(total / (1024 * 2 ** level));
            for (const place of [0, 0.31, 0.62, 0.93]) {
                const first = Math.floor(place * Math.max(all.length - LANES, 0));
                const lanes = all.slice(first, first + LANES).join(",");
                const begin = performance.now();
                const answer = await fetch(`${base}api/v1/tile?track=${track}&level=${level}&index=${Math.floor(place * count)}&lanes=${lanes}&digest=${digest}`, { headers });
                const bytes = (await answer.arrayBuffer()).byteLength;
                if (!answer.ok) throw new Error(`${track} ${level}: ${answer.status}`);
                times.push({ track, level, ms: performance.now() - begin, bytes });
            }
        }
    }
    const sorted = times.map((one) => one.ms).sort((a, b) => a - b);
    const worst = times.reduce((a, b) => (b.ms > a.ms ? b : a));
    return { count: times.length, median_ms: at(sorted, 0.5), p99_ms: at(sorted, 0.99), worst };
}

/** Frame times while zooming in, panning and zooming out, by keys and by the wheel. */
async function frameTimes() {
    const { page, context } = await open(of, server, "?page=threads", { viewport: SIZE });
    await page.waitForFunction(isPainted, undefined, { polling: 20 });
    const chart = page.locator("main .scroller, main canvas").first();
    const box = await chart.boundingBox();
    await page.mouse.move(box.x + box.width * 0.6, box.y + Math.min(box.height, 300) / 2);
    await page.evaluate(() => {
        const times = [];
        globalThis.frames = times;
        let last = performance.now();
        const each = (now) => {
            times.push(now - last);
            last = now;
            requestAnimationFrame(each);
        };
        requestAnimationFrame(each);
    });
    const keys = ["w", "w", "w", "d", "a", "s", "s", "d"];
    for (let step = 0; step < STEPS; step += 1) {
        if (step % 3 === 2) {
            await page.keyboard.down("Control");
            await page.mouse.wheel(0, step % 2 ? -120 : 120);
            await page.keyboard.up("Control");
        } else await page.keyboard.press(keys[step % keys.length]);
        await page.waitForTimeout(STEP_MS);
    }
    const times = await page.evaluate(() => globalThis.frames);
    await context.close();
    const sorted = times.slice(2).sort((a, b) => a - b);
    return { count: sorted.length, median_ms: at(sorted, 0.5), p95_ms: at(sorted, 0.95), worst_ms: sorted.at(-1) };
}

function at(sorted, share) {
    return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)];
}

/** Runs in the page: whether a chart is painted. */
function isPainted() {
    const canvas = document.querySelector("main canvas");
    if (!canvas || !canvas.width) return false;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, Math.min(canvas.height, 200));
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4 * 61) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return seen.size > 4;
}
