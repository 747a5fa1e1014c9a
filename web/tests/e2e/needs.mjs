// Skips that WHYSLOW_REQUIRE forbids: a comma-separated list of needs, or `all`. The names are those of `Need`
// in crates/whyslow-testkit.

/** Needs that cannot be installed: `all` does not include them. */
const NOT_INSTALLABLE = ["machine", "root", "not_root"];

export function isRequired(need, names) {
    const required = names.split(",").map((name) => name.trim());
    return required.includes(need) || (required.includes("all") && !NOT_INSTALLABLE.includes(need));
}

/** For `{ skip }`: the reason, or false; throws if the missing need is required. */
export function skipFor(need, reason) {
    if (!reason) return false;
    const message = `${reason} [${need}]`;
    if (isRequired(need, process.env["WHYSLOW_REQUIRE"] ?? "")) {
        throw new Error(`required by WHYSLOW_REQUIRE but skipped: ${message}`);
    }
    return message;
}
