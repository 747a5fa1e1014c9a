// Canvas colours, read from the style sheet once per theme and packed for ImageData.

/** One pixel, as a little-endian RGBA word. */
export type Packed = number;

export function packed(red: number, green: number, blue: number, alpha = 255): Packed {
    return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function fromHex(text: string): Packed {
    const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
    const part = (at: number) => Number.parseInt(found?.[at] ?? "80", 16);
    return packed(part(1), part(2), part(3));
}

/** A mixture: all of `a` at 0, all of `b` at 1. */
export function mixed(a: Packed, b: Packed, share: number): Packed {
    const part = (shift: number) => {
        const from = (a >>> shift) & 255;
        return Math.round(from + (((b >>> shift) & 255) - from) * share);
    };
    return packed(part(0), part(8), part(16));
}

export function css(colour: Packed): string {
    return `rgb(${colour & 255} ${(colour >>> 8) & 255} ${(colour >>> 16) & 255})`;
}

export interface Palette {
    readonly back: Packed;
    readonly card: Packed;
    readonly line: Packed;
    readonly text: string;
    readonly quiet: string;
    readonly accent: string;
    readonly select: string;
    readonly running: Packed;
    readonly runnable: Packed;
    readonly blocked: Packed;
    readonly asleep: Packed;
    /** A kernel wait inferred from a sampling gap, not recorded. */
    readonly inferred: Packed;
    /** A sampling gap that reveals nothing about the thread. */
    readonly unseen: Packed;
    readonly series: readonly Packed[];
    readonly font: string;
}

export function readPalette(): Palette {
    const style = getComputedStyle(document.documentElement);
    const text = (name: string) => style.getPropertyValue(name).trim();
    const colour = (name: string) => fromHex(text(name));
    return {
        back: colour("--back"),
        card: colour("--card"),
        line: colour("--line"),
        text: text("--text"),
        quiet: text("--quiet"),
        accent: text("--accent"),
        select: text("--select"),
        running: colour("--running"),
        runnable: colour("--runnable"),
        blocked: colour("--blocked"),
        asleep: colour("--asleep"),
        inferred: colour("--inferred"),
        unseen: colour("--unseen-time"),
        series: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => colour(`--s${at}`)),
        font: `12px ${text("--font")}`,
    };
}

/** Anchors of the heat-map ramp, from few to many; lightness falls steadily (rises in the dark theme). */
const LIGHT_RAMP: readonly string[] = ["#f2efe2", "#f3d28c", "#ec9a4d", "#cf5a3c", "#8f2a4f", "#3f1447"];
const DARK_RAMP: readonly string[] = ["#20222e", "#4a2a63", "#8e3168", "#d0534f", "#f09a45", "#fbe8a0"];

/** `steps` colours from the lowest to the highest value. */
export function ramp(isDark: boolean, steps = 256): Uint32Array {
    const anchors = (isDark ? DARK_RAMP : LIGHT_RAMP).map(fromHex);
    return Uint32Array.from({ length: steps }, (_, at) => {
        const place = (at / (steps - 1)) * (anchors.length - 1);
        const low = Math.min(Math.floor(place), anchors.length - 2);
        return mixed(anchors[low] ?? 0, anchors[low + 1] ?? 0, place - low);
    });
}

/** Perceived lightness, 0 to 1: for the test that ramps are monotone. */
export function lightness(colour: Packed): number {
    const linear = (shift: number) => {
        const part = ((colour >>> shift) & 255) / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    };
    return Math.cbrt(0.2126 * linear(0) + 0.7152 * linear(8) + 0.0722 * linear(16));
}

/** The same colour for the same number everywhere, from a set of easily distinguished colours. */
export function hashed(palette: Palette, number: number): Packed {
    const mix = Math.imul(number ^ (number >>> 15), 0x9e3779b1) >>> 0;
    const base = palette.series[mix % palette.series.length] ?? palette.asleep;
    return mixed(base, palette.card, ((mix >>> 8) % 4) * 0.13);
}
