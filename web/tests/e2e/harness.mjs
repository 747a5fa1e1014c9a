// Starts a server on test recordings, and a browser that reports every request, error or dialog it should not cause.
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
/** Upper limit for a page on a slow machine; not a measurement. */
const PATIENCE_MS = 60_000;

/** Without these flags Chromium contacts hosts of its vendor. */
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

/** The headless shell first: it renders the same pages with half of the CPU time. */
export function chromiumPath() {
    const names = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/snap/bin/chromium"];
    return names.find((path) => existsSync(path)) ?? null;
}

/** Why no browser can run here, or false. */
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
    let output = "";
    const url = await new Promise((resolve, reject) => {
        const collect = (piece) => {
            output += piece;
            const found = /http:\/\/\S+#token=\w+/.exec(output);
            if (found) resolve(found[0]);
        };
        child.stdout.on("data", collect);
        child.stderr.on("data", collect);
        child.on("exit", (code) => reject(new Error(`whyslow serve exited with ${code}: ${output}`)));
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

/** Runs the program and returns its output. */
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

/** Opens a page of a server. Violations are collected in `wrong`. */
export async function open(of, server, query = "", options = {}) {
    const [base, token] = server.url.split("#");
    return openAt(of, `${base}${query}#${token}`, base, options);
}

/** Opens a report from a file, without any network. */
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
        if (!isOurs) wrong.push(`request to another host: ${request.url()}`);
    });
    page.on("dialog", (dialog) => {
        wrong.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
    });
    await freshPages(page, base);
    await page.goto(address);
    return { page, wrong, context };
}

/** With WHYSLOW_PAGES: serves the pages of that folder (web/dist), so that the program need not be rebuilt. */
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

/** Waits until no request of the page is pending. */
export async function settled(page) {
    await page.waitForFunction(() => !document.querySelector("main .pending, main .stale") && document.querySelector("main h1"));
    await page.waitForTimeout(150);
}

/** Violations that axe finds, in short form. */
export async function axe(page) {
    // The content security policy forbids injected scripts, as it should: axe is evaluated outside of it.
    await page.evaluate(axeSource);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(" | ")}`);
}

/** Saves a screenshot if WHYSLOW_PICTURES names a folder. */
export async function picture(page, name) {
    const folder = process.env["WHYSLOW_PICTURES"];
    if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
