// JSON with whole numbers beyond 2^53: ns since 1970 have 19 digits, and none of them may be lost.

/** A whole number: a number while that is exact, else its digits. */
export type Exact = number | string;

/** Strings (to be left alone), or whole numbers too long for a double. */
const STRING_OR_LONG = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;

/** Like `JSON.parse`, but whole numbers of 16 digits and more come as text. */
export function parseExact(text: string): unknown {
    const quoted = text.replace(STRING_OR_LONG, (found) => (found.startsWith('"') ? found : `"${found}"`));
    return JSON.parse(quoted);
}

export function toBig(value: Exact): bigint {
    return BigInt(value);
}

/** Of a difference or a length: doubles are exact up to 104 days. */
export function toNumber(value: Exact): number {
    return Number(value);
}
