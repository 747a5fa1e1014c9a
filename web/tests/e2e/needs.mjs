// Skips that WHYSLOW_REQUIRE does not allow: names of needs with commas between, or `all`. The names are
// those of `Need` in crates/whyslow-testkit.

/** What no installation brings: `all` leaves them out. */
const NOT_TO_BE_HAD = ["machine", "root", "not_root"];

export function isRequired(need, names) {
    const required = names.split(",").map((name) => name.trim());
    return required.includes(need) || (required.includes("all") && !NOT_TO_BE_HAD.includes(need));
}

/** For `{ skip }`: the reason to, if there is one, or false; an error if what is lacking is required. */
export function skipFor(need, reason) {
    if (!reason) return false;
    const told = `${reason} [${need}]`;
    if (isRequired(need, process.env["WHYSLOW_REQUIRE"] ?? "")) {
        throw new Error(`required by WHYSLOW_REQUIRE but skipped: ${told}`);
    }
    return told;
}
