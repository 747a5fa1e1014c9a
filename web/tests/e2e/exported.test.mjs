// Opens exported profiles with the programs that they are for: speedscope in the browser, and the reader of the
// Firefox Profiler. The expected times are known from the generated trace.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { after, before, test } from "node:test";

import { browser, run, skipWithoutChromium } from "./harness.mjs";
import { skipFor } from "./needs.mjs";

const resolve = (name) => {
    try {
        return createRequire(import.meta.url).resolve(name);
    } catch {
        return null;
    }
};
const speedscope = resolve("speedscope/package.json");
const profiler = resolve("@firefox-devtools/profiler-cli");
const THREADS = ["web", "db", 'two words;<b>"'];
const ROUNDS = 60;
let folder;

before(() => {
    folder = mkdtempSync(join(tmpdir(), "whyslow-x-"));
    writeFileSync(join(folder, "stacks.txt"), trace());
    run("import", join(folder, "stacks.txt"), "-o", join(folder, "stacks.wsl"), "-q");
});
after(() => {
    if (folder) rmSync(folder, { recursive: true });
});

/** Length and stack of the wait in a round. */
function wait(round) {
    return { thread: round % 3, ms: 5 + round, stack: ["main", `u${round % 4}`, `k${round % 5}`, "io_schedule"] };
}

/** A trace in which one of three threads waits each second, in known functions. */
function trace() {
    const lines = ["whyslow-text 1"];
    for (let round = 0; round < ROUNDS; round++) {
        const { thread, ms, stack } = wait(round);
        const threadOf = (of) => ({ tid: 10 + of, comm: JSON.stringify(THREADS[of]) });
        const { tid, comm } = threadOf(thread);
        const next = threadOf((thread + 1) % 3);
        const task = `(tid=${tid} pid=10 comm=${comm})`;
        const begin = `${1 + round}.000000000`;
        const end = `${1 + round}.${String(ms).padStart(3, "0")}000000`;
        const [top, caller, called, leaf] = stack;
        lines.push(
            `${begin} [0] ${task} sched_switch prev=${tid} prev_comm=${comm} prev_state=D next=0`,
            `${end} [0] sched_switch prev=0 prev_state=R next=${tid} next_comm=${comm}`,
            `${end} [0] ${task} stack kind=back since=${begin} state=D cpu=0 kernel=${leaf};${called} user=${caller};${top}`,
            `${1 + round}.900000000 [0] ${task} sched_switch prev=${tid} prev_comm=${comm} prev_state=S next=${next.tid} next_comm=${next.comm}`,
        );
    }
    return `${lines.join("\n")}\n`;
}

/** Total and self time of each function of a thread, ms. */
function wanted(thread) {
    const sums = new Map();
    for (let round = 0; round < ROUNDS; round++) {
        const one = wait(round);
        if (one.thread !== thread) continue;
        one.stack.forEach((name, depth) => {
            const [all, self] = sums.get(name) ?? [0, 0];
            sums.set(name, [all + one.ms, self + (depth === one.stack.length - 1 ? one.ms : 0)]);
        });
    }
    return sums;
}

/** Serves speedscope and a profile on the loopback interface. */
async function hosted(profile) {
    const release = join(dirname(speedscope), "dist/release");
    const types = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".json": "application/json" };
    const server = createServer((request, response) => {
        const { pathname } = new URL(request.url, "http://localhost");
        const path = pathname === "/profile" ? profile : join(release, pathname === "/" ? "index.html" : pathname);
        try {
            const body = readFileSync(path);
            response.setHeader("content-type", types[extname(path)] ?? "application/octet-stream");
            response.end(body);
        } catch {
            response.statusCode = 404;
            response.end();
        }
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    return { base: `http://127.0.0.1:${server.address().port}/`, end: () => server.close() };
}

const noSpeedscope = skipFor("tools", !speedscope && "speedscope is not installed") || skipWithoutChromium();

/** Opens a profile in the function table of speedscope. */
async function inSpeedscope(form, sign, check) {
    const profile = join(folder, `of-${form}`);
    run("export", form, join(folder, "stacks.wsl"), "-q", "-o", profile);
    const { base, end } = await hosted(profile);
    const of = await browser();
    try {
        const page = await of.newPage();
        const wrong = [];
        page.on("pageerror", (error) => wrong.push(error.message));
        await page.goto(`${base}#profileURL=${encodeURIComponent(`${base}profile`)}`);
        await page.getByText(sign).first().waitFor();
        await page.keyboard.press("3");
        await page.locator("tr:has(td)").filter({ hasText: "io_schedule" }).first().waitFor();
        await check(page);
        assert.deepEqual(wrong, []);
    } finally {
        await of.close();
        end();
    }
}

/** Times of each function in the visible profile, as text. */
async function listed(page) {
    const cells = (all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim()));
    const rows = await page.locator("tr:has(td)").evaluateAll(cells);
    // The list of threads is also a table.
    const timed = rows.filter(([all]) => all.endsWith("%)"));
    return new Map(timed.map(([all, self, symbol]) => [symbol, [all, self]]));
}

test("speedscope finds the same time in each function", { skip: noSpeedscope }, () =>
    inSpeedscope("speedscope", "(1/3)", async (page) => {
        const seen = [];
        for (let number = 1; number <= 3; number++) {
            await page.getByText(`(${number}/3)`).waitFor();
            const lines = (await page.locator("body").innerText()).split("\n");
            const name = lines.find((line) => line.includes(`(${number}/3)`)).trim();
            const thread = THREADS.findIndex((one) => name.startsWith(one));
            seen.push(thread);
            const found = [...(await listed(page))].map(([symbol, times]) => [symbol, times.map(milliseconds)]);
            assert.deepEqual(sorted(found), sorted(wanted(thread)), name);
            await page.keyboard.press("n");
        }
        assert.deepEqual(seen.sort(), [0, 1, 2]);
    }),
);

/** Sums over all threads. */
function together() {
    const sums = new Map();
    for (const thread of THREADS.keys()) {
        for (const [name, [all, self]] of wanted(thread)) {
            const [more, itself] = sums.get(name) ?? [0, 0];
            sums.set(name, [all + more, self + itself]);
        }
    }
    return sums;
}

for (const form of ["collapsed", "pprof"]) {
    test(`speedscope finds it in ${form}, too`, { skip: noSpeedscope }, () =>
        inSpeedscope(form, "Sandwich", async (page) => {
            const listing = await listed(page);
            for (const [name, times] of together()) {
                // Kernel functions are marked; weights without a unit are samples.
                const found = listing.get(name) ?? listing.get(`${name}_[k]`);
                assert.ok(found, `${name} is not among ${[...listing.keys()]}`);
                assert.deepEqual(found.map(form === "pprof" ? milliseconds : nanoseconds), times, name);
            }
        }),
    );
}

/** `670,000,000 (100%)`, in ms. */
function nanoseconds(text) {
    const found = /^([\d,]+)/.exec(text);
    assert.ok(found, text);
    return Number(found[1].replaceAll(",", "")) / 1e6;
}

function milliseconds(text) {
    const found = /^([\d.]+)(ms|s|ns|µs)/.exec(text);
    assert.ok(found, text);
    return Math.round(Number(found[1]) * { ns: 1e-6, "µs": 1e-3, ms: 1, s: 1e3 }[found[2]] * 100) / 100;
}

const sorted = (sums) => [...sums].sort(([one], [other]) => (one < other ? -1 : 1));

const SESSION = "test";

/** Whether the socket named in the metadata of a session accepts connections. */
function listens(metadata) {
    let path;
    try {
        path = JSON.parse(readFileSync(metadata, "utf8")).socketPath;
    } catch {
        return Promise.resolve(false);
    }
    return new Promise((resolve) => {
        const socket = connect(path);
        socket.on("connect", () => {
            socket.end();
            resolve(true);
        });
        socket.on("error", () => resolve(false));
    });
}

/** Runs commands of the reader, which keeps a profile in a daemon until the test ends it. */
function reader() {
    // The path of a socket is limited to about a hundred bytes.
    const place = mkdtempSync(join(tmpdir(), "ff-"));
    const env = { ...process.env, PROFILER_CLI_SESSION_DIR: place, PROFILER_CLI_NO_SYMBOLICATE: "1" };
    const run = (...words) => spawnSync(process.execPath, [profiler, ...words], { env, encoding: "utf8", timeout: 60_000 });
    const query = (...words) => {
        const done = run(...words, "--session", SESSION);
        assert.equal(done.status, 0, `${words.join(" ")}: ${done.stderr}`);
        return done.stdout;
    };
    let daemon;
    // Not with its command `load`, which gives the daemon half a second to start: too little on a busy machine.
    const load = async (path) => {
        daemon = spawn(process.execPath, [profiler, "--daemon", path, "--session", SESSION], { env, stdio: "ignore" });
        const until = Date.now() + 120_000;
        // A command removes a session whose socket does not listen yet, so none runs before it does.
        while (!(await listens(join(place, `${SESSION}.json`)))) {
            await new Promise((resolve) => setTimeout(resolve, 100));
            assert.equal(daemon.exitCode, null, `the daemon ended while it loaded ${path}`);
            assert.ok(Date.now() < until, `the daemon does not listen after it loaded ${path}`);
        }
        let done;
        do {
            done = run("thread", "list", "--session", SESSION);
        } while (done.status !== 0 && Date.now() < until);
        assert.equal(done.status, 0, `load ${path}: ${done.stderr}`);
    };
    return {
        query: (...words) => JSON.parse(query(...words, "--json")),
        load,
        end: () => {
            daemon?.kill();
            rmSync(place, { recursive: true, force: true });
        },
    };
}

const noProfiler = skipFor("tools", !profiler && "the reader of the Firefox Profiler is not installed");

test("the Firefox Profiler finds the same time in each function", { skip: noProfiler }, async () => {
    const path = join(folder, "firefox.json");
    run("export", "firefox", join(folder, "stacks.wsl"), "-q", "-o", path);
    const of = reader();
    try {
        await of.load(path);
        const { threads } = of.query("thread", "list");
        assert.deepEqual(threads.map((thread) => thread.name).sort(), [...THREADS].sort());
        for (const thread of threads) {
            const { functions, weightType } = of.query("thread", "functions", "--include-idle", "--limit", "1000", "--thread", thread.threadHandle);
            assert.equal(weightType, "tracing-ms");
            const found = new Map(functions.map((one) => [one.name, [one.totalSamples, one.selfSamples]]));
            assert.deepEqual(sorted(found), sorted(wanted(THREADS.indexOf(thread.name))), thread.name);
        }
    } finally {
        of.end();
    }
});

test("the Firefox Profiler reads calls of threads without any stack", { skip: noProfiler }, async () => {
    const lines = ["whyslow-text 1"];
    for (let call = 0; call < 20; call++) {
        lines.push(
            `${call + 1}.000000000 [0] (tid=7 pid=7 comm=db) syscall_enter name=fsync fd=3`,
            `${call + 1}.0${10 + call}000000 [0] (tid=7 pid=7 comm=db) syscall_exit name=fsync ret=0`,
        );
    }
    const [source, path] = [join(folder, "calls.txt"), join(folder, "calls.json")];
    writeFileSync(source, `${lines.join("\n")}\n`);
    run("export", "firefox", source, "-q", "-o", path);
    const of = reader();
    try {
        await of.load(path);
        assert.equal(of.query("thread", "info").markerCount, 20);
        const { markers, totalCount } = of.query("profile", "markers", "--limit", "100");
        assert.equal(totalCount, 20);
        const lengths = markers.map((marker) => Math.round(marker.duration * 1e3) / 1e3).sort((one, other) => one - other);
        assert.deepEqual(lengths, Array.from({ length: 20 }, (_, call) => 10 + call));
        assert.ok(markers.every((marker) => marker.name === "fsync"));
    } finally {
        of.end();
    }
});
