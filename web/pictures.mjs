// Takes the pictures of README.md and docs/guide.md: WHYSLOW=target/debug/whyslow node web/pictures.mjs
// That of the page Fleet only if LAKE names a lake, such as one of ./dev eval fleet found --folder FOLDER; this
// needs the Python package whyslow (WHYSLOW_PYTHON, PYTHONPATH).
import { join } from "node:path";

import { browser, fixture, open, serve, settled } from "./tests/e2e/harness.mjs";

const folder = join(import.meta.dirname, "../docs/pictures");
const trace = fixture("web-incident/trace.tar.zst");
const of = await browser();

/** Opens a page of a server, and saves it as each picture after its step. */
async function pictures(server, query, steps) {
    const { page, context } = await open(of, server, query, { viewport: { width: 1100, height: 720 } });
    await settled(page);
    for (const [name, step] of steps) {
        if (step) await step(page);
        await settled(page);
        await page.screenshot({ path: join(folder, `${name}.jpg`), quality: 80, type: "jpeg" });
    }
    await context.close();
    await server.stop();
}

await pictures(await serve(trace), "", [
    ["explain", null],
    ["threads", (page) => page.locator(".finding button.culprit").first().click()],
]);
const lake = process.env["LAKE"];
if (lake) {
    await pictures(await serve("--lake", lake, trace), "?page=fleet", [["fleet", (page) => page.locator(".host-map").waitFor()]]);
}
await of.close();
