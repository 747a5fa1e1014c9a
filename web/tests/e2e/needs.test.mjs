// A skip passes unless the missing need is required.
import assert from "node:assert/strict";
import test from "node:test";
import { isRequired, skipFor } from "./needs.mjs";

test("what is named is required, and `all` is what can be installed", () => {
    assert.equal(isRequired("chromium", ""), false);
    assert.equal(isRequired("chromium", "live,data"), false);
    assert.equal(isRequired("chromium", "live, chromium"), true);
    assert.equal(isRequired("chromium", "all"), true);
    assert.equal(isRequired("machine", "all"), false);
});

test("a skip of something required is an error", (context) => {
    const before = process.env["WHYSLOW_REQUIRE"];
    context.after(() => {
        if (before === undefined) delete process.env["WHYSLOW_REQUIRE"];
        else process.env["WHYSLOW_REQUIRE"] = before;
    });
    process.env["WHYSLOW_REQUIRE"] = "data";
    assert.equal(skipFor("chromium", null), false);
    assert.equal(skipFor("chromium", "it is not installed"), "it is not installed [chromium]");
    process.env["WHYSLOW_REQUIRE"] = "data,chromium";
    assert.equal(skipFor("chromium", false), false);
    assert.throws(() => skipFor("chromium", "it is not installed"), /required by WHYSLOW_REQUIRE but skipped: it is not installed \[chromium\]/);
});
