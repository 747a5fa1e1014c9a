// A server of our own on recordings of our own, and a browser that tells everything it should not do.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { skipFor } from "./needs.mjs";

const root = join(import.meta.dirname, "../../..");
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** A page of ours needs less than this on a slow machine; it is a limit, not a measurement. */
const PATIENCE_MS = 60_000;

/** Without these, Chromium asks hosts of its maker things of its own. */
const FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
];

export function chromiumPath() {
    return ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/snap/bin/chromium"].find((path) => existsSync(path)) ?? null;
}

/** Why no page can be shown here, or false. */
export function skipWithoutChromium() {
    return skipFor("chromium", !chromiumPath() && "chromium is not installed");
}

export function fixture(name) {
    return join(root, "fixtures", name);
}

/** Starts `whyslow serve` on recordings or traces; ends with `stop`. */
export async function serve(...recordings) {
    const program = process.env["WHYSLOW"];
    if (!program) throw new Error("WHYSLOW must name the program");
    const home = mkdtempSync(join(tmpdir(), "whyslow-e2e-"));
    const env = { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, "cache"), XDG_STATE_HOME: join(home, "state") };
    delete env["SSH_CONNECTION"];
    const child = spawn(program, ["serve", ...recordings], { env, stdio: ["ignore", "pipe", "pipe"] });
    let told = "";
    const url = await new Promise((resolve, reject) => {
        const hear = (piece) => {
            told += piece;
            const found = /http:\/\/\S+#token=\w+/.exec(told);
            if (found) resolve(found[0]);
        };
        child.stdout.on("data", hear);
        child.stderr.on("data", hear);
        child.on("exit", (code) => reject(new Error(`whyslow serve ended with ${code}: ${told}`)));
    });
    return {
        url,
        pid: child.pid,
        stop: async () => {
            child.removeAllListeners("exit");
            const ended = new Promise((resolve) => child.on("exit", resolve));
            child.kill("SIGINT");
            await ended;
            rmSync(home, { recursive: true, force: true });
        },
    };
}

export async function browser() {
    return chromium.launch({ executablePath: chromiumPath(), args: FLAGS });
}

/** Runs the program to its end; returns what it printed. */
export function run(...words) {
    const program = process.env["WHYSLOW"];
    if (!program) throw new Error("WHYSLOW must name the program");
    const home = mkdtempSync(join(tmpdir(), "whyslow-e2e-"));
    const env = { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, "cache"), XDG_STATE_HOME: join(home, "state") };
    const done = spawnSync(program, words, { env, encoding: "utf8" });
    rmSync(home, { recursive: true, force: true });
    if (done.status !== 0) throw new Error(`whyslow ${words.join(" ")} ended with ${done.status}: ${done.stderr}`);
    return done.stdout;
}

/** Opens an address of a server. What a page must not do is collected in `wrong`. */
export async function open(of, server, query = "", options = {}) {
    const [base, token] = server.url.split("#");
    return openAt(of, `${base}${query}#${token}`, base, options);
}

/** Opens a report from the disk, with no network at all. */
export async function openFile(of, path, query = "", options = {}) {
    const base = pathToFileURL(path).href;
    return openAt(of, `${base}${query}`, base, { offline: true, ...options });
}

async function openAt(of, address, base, options) {
    const context = await of.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const wrong = [];
    page.on("console", (message) => {
        if (message.type() === "error") wrong.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("request", (request) => {
        const isOurs = request.url().startsWith(base) || request.url().startsWith("data:") || request.url().startsWith("blob:");
        if (!isOurs) wrong.push(`asked somebody else: ${request.url()}`);
    });
    page.on("dialog", (dialog) => {
        wrong.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
    });
    await freshPages(page, base);
    await page.goto(address);
    return { page, wrong, context };
}

/** With WHYSLOW_PAGES: the pages of that folder (web/dist) on the program as it is, which need not be built anew. */
async function freshPages(page, base) {
    const folder = process.env["WHYSLOW_PAGES"];
    if (!folder || !base.startsWith("http")) return;
    await page.route(
        (url) => url.href.startsWith(base) && /^\/(app\.js|app\.css)?$/.test(url.pathname),
        async (route) => {
            const response = await route.fetch();
            const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
            const headers = { ...response.headers() };
            delete headers["content-encoding"];
            delete headers["content-length"];
            await route.fulfill({ response, headers, body: readFileSync(join(folder, name), "utf8") });
        },
    );
}

/** Until nothing is awaited any more. */
export async function settled(page) {
    await page.waitForFunction(() => !document.querySelector("main .pending, main .stale") && document.querySelector("main h1"));
    await page.waitForTimeout(150);
}

/** What axe finds wrong, in short. */
export async function axe(page) {
    // The page's own rules forbid scripts of others, and so they should: axe runs beside them.
    await page.evaluate(axeSource);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(" | ")}`);
}

/** Keeps a picture where somebody asked for it. */
export async function picture(page, name) {
    const folder = process.env["WHYSLOW_PICTURES"];
    if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
