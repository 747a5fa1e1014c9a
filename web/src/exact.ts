// JSON with whole numbers beyond 2^53: ns since 1970 have 19 digits, and none of them may be lost.

/** A whole number: a number while that is exact, else its digits. */
export type Exact = number | string;

/** Strings (to be left alone), or numbers with at least 16 characters, all of each. */
const STRING_OR_LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{15,}/g;
const WHOLE = /^-?\d+$/;

/** Like `JSON.parse`, but whole numbers of 16 digits and more come as text. */
export function parseExact(text: string): unknown {
    return JSON.parse(text.replace(STRING_OR_LONG, (found) => (WHOLE.test(found) ? `"${found}"` : found)));
}

export function toBig(value: Exact): bigint {
    return BigInt(value);
}

/** Of a difference or a length: doubles are exact up to 104 days. */
export function toNumber(value: Exact): number {
    return Number(value);
}
