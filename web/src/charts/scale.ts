// Time to pixels and back, and positions of axis lines.
import type { Span } from "../times";

export interface TimeScale {
    readonly window: Span;
    readonly width: number;
}

export function toX(scale: TimeScale, ns: number): number {
    return ((ns - scale.window.begin) / (scale.window.end - scale.window.begin)) * scale.width;
}

export function toTime(scale: TimeScale, x: number): number {
    return scale.window.begin + (x / Math.max(scale.width, 1)) * (scale.window.end - scale.window.begin);
}

export function nsPerPixel(scale: TimeScale): number {
    return (scale.window.end - scale.window.begin) / Math.max(scale.width, 1);
}

/** Round steps from a minute up. */
const LONG_STEPS: readonly number[] = [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].map((seconds) => seconds * 1e9);

/** The smallest round step with at least `pixels` between lines. */
export function tickStep(scale: TimeScale, pixels: number): number {
    const least = nsPerPixel(scale) * pixels;
    if (least > 30e9) return LONG_STEPS.find((step) => step >= least) ?? 86400e9 * Math.ceil(least / 86400e9);
    const power = 10 ** Math.max(Math.floor(Math.log10(Math.max(least, 1))), 0);
    const factor = [1, 2, 5, 10].find((one) => one * power >= least) ?? 10;
    return Math.max(factor * power, 1);
}

/**
 * Lines at round times of day, as ns since the start of the recording.
 * `phase` is the time from midnight to the start of the recording.
 */
export function ticks(scale: TimeScale, pixels: number, phase: bigint): { readonly step: number; readonly at: readonly number[] } {
    const step = tickStep(scale, pixels);
    const offset = Number(phase % BigInt(step));
    const first = Math.ceil((scale.window.begin + offset) / step) * step - offset;
    const at: number[] = [];
    for (let ns = first; ns <= scale.window.end; ns += step) at.push(ns);
    return { step, at };
}
