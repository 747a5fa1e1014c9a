// Bundles the pages into dist/: app.js, app.css, index.html, and a hash of the sources.
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = import.meta.dirname;
const out = join(root, "dist");
// Size limit for slow connections; see docs/performance.md.
const GZIP_BYTES_MAX = 150_000;

/** All source files of the bundle, sorted. */
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
// Newer files would trigger a rebuild of the program that embeds them.
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
// The URLs that the pages request, for reports.
await build({ entryPoints: [join(root, "src/report_queries.ts")], outfile: join(out, "report_queries.mjs"), bundle: true, format: "esm", logLevel: "warning" });
const { reportQueries } = await import(join(out, "report_queries.mjs"));
rmSync(join(out, "report_queries.mjs"));
const queries = JSON.stringify(reportQueries(), null, 1);
cpSync(join(root, "src/index.html"), join(out, "index.html"));

let bytes = 0;
for (const name of readdirSync(out)) {
    bytes += gzipSync(readFileSync(join(out, name)), { level: 9 }).length;
}
console.log(`web/dist: ${bytes} bytes compressed`);
if (bytes > GZIP_BYTES_MAX) {
    console.error(`error: web/dist is larger than ${GZIP_BYTES_MAX} bytes compressed`);
    process.exit(1);
}

writeFileSync(join(out, "queries.json"), `${queries}\n`);

writeFileSync(join(out, "stamp"), stamp);
