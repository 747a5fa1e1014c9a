// Bundles tests/unit/*.test.ts and runs them in node: no browser, no network.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { build } from "esbuild";

const folder = join(import.meta.dirname, "unit");
const out = mkdtempSync(join(tmpdir(), "whyslow-web-"));
const entryPoints = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(folder, name));
await build({
    entryPoints,
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
});
const run = spawnSync(process.execPath, ["--test", out], { stdio: "inherit" });
rmSync(out, { recursive: true });
process.exit(run.status ?? 1);
