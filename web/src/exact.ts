// JSON with integers beyond 2^53: ns since 1970 have 19 digits, and none may be lost.

/** An integer: a number where that is exact, else its digits. */
export type Exact = number | string;

/** Strings, which stay as they are, or numbers of at least 16 characters. */
const STRING_OR_LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{15,}/g;
const WHOLE = /^-?\d+$/;

/** Like `JSON.parse`, but integers of 16 digits or more become strings. */
export function parseExact(text: string): unknown {
    return JSON.parse(text.replace(STRING_OR_LONG, (found) => (WHOLE.test(found) ? `"${found}"` : found)));
}

export function toBig(value: Exact): bigint {
    return BigInt(value);
}

/** For differences and lengths: doubles are exact up to 104 days. */
export function toNumber(value: Exact): number {
    return Number(value);
}
