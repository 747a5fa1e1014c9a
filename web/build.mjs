// Bundles the pages into dist/: app.js, app.css, index.html, and a stamp of what they were made from.
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = import.meta.dirname;
const out = join(root, "dist");
// What people wait for over a slow line; see docs/performance.md.
const GZIP_BYTES_MAX = 150_000;

/** Everything a bundle is made from, in one order. */
function sources(folder) {
    const found = [];
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) found.push(...sources(path));
        else found.push(path);
    }
    return found.sort();
}
const hash = createHash("sha256");
for (const path of [join(root, "package-lock.json"), join(root, "build.mjs"), ...sources(join(root, "src"))]) {
    hash.update(path.slice(root.length));
    hash.update(readFileSync(path));
}
const stamp = `${hash.digest("hex")}\n`;
// Files that are newer would have the program compiled again that carries them.
if (existsSync(join(out, "stamp")) && readFileSync(join(out, "stamp"), "utf8") === stamp) {
    console.log("web/dist: up to date");
    process.exit(0);
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
    entryPoints: { app: join(root, "src/main.tsx") },
    outdir: out,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome110", "firefox110", "safari16"],
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
});
// What a report has to hold: the questions of the pages, from the pages themselves.
await build({ entryPoints: [join(root, "src/requests.ts")], outfile: join(out, "requests.mjs"), bundle: true, format: "esm", logLevel: "warning" });
const { questions } = await import(join(out, "requests.mjs"));
rmSync(join(out, "requests.mjs"));
const asked = JSON.stringify(questions(), null, 1);
cpSync(join(root, "src/index.html"), join(out, "index.html"));

let bytes = 0;
for (const name of readdirSync(out)) {
    bytes += gzipSync(readFileSync(join(out, name)), { level: 9 }).length;
}
console.log(`web/dist: ${bytes} bytes compressed`);
if (bytes > GZIP_BYTES_MAX) {
    console.error(`error: more than the ${GZIP_BYTES_MAX} bytes that a slow line is to wait for`);
    process.exit(1);
}

writeFileSync(join(out, "questions.json"), `${asked}\n`);

writeFileSync(join(out, "stamp"), stamp);
