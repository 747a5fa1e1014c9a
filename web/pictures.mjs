// Takes the pictures of README.md and docs/guide.md: WHYSLOW=target/debug/whyslow node web/pictures.mjs
import { join } from "node:path";

import { browser, fixture, open, serve, settled } from "./tests/e2e/harness.mjs";

const folder = join(import.meta.dirname, "../docs/pictures");
const server = await serve(fixture("web-incident/trace.tar.zst"));
const of = await browser();
const { page, context } = await open(of, server, "", { viewport: { width: 1100, height: 720 } });
const taken = (name) => page.screenshot({ path: join(folder, `${name}.jpg`), quality: 80, type: "jpeg" });
await settled(page);
await taken("explain");
await page.locator(".finding button.culprit").first().click();
await settled(page);
await taken("threads");
await context.close();
await of.close();
await server.stop();
