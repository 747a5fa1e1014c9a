// Names in a recording are chosen by the recorded programs and may contain anything.

/** Characters that act on a terminal or on text direction instead of being visible: controls, bidi marks, lone surrogates. */
const UNSEEN =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

/** The text with invisible characters written as escapes. */
export function visible(text: string): string {
    return text.replace(UNSEEN, (unit) => SHORT[unit] ?? `\\u{${unit.charCodeAt(0).toString(16)}}`);
}

/** At most `length` characters; cut in the middle, so that the end, which identifies a path, stays. */
export function shortened(text: string, length: number): string {
    const characters = Array.from(text);
    if (characters.length <= length) return text;
    const tail = Math.ceil((length - 1) * 0.6);
    const head = length - 1 - tail;
    return `${characters.slice(0, head).join("")}…${characters.slice(characters.length - tail).join("")}`;
}

/** Maximum length of a tooltip. */
const TITLE_LENGTH = 300;

/** For tooltips and labels: visible, and of bounded length. */
export function title(text: string): string {
    return shortened(visible(text), TITLE_LENGTH);
}
