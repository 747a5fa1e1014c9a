// Colours of samples, by thread state, kind of code and innermost function.
import { hashed, mixed, type Packed, type Palette } from "./colour";

/** Parts of a value of the track `samples`, as documented in docs/api.md. */
export interface SampleValue {
    /** Index into the list of `values`. */
    readonly place: number;
    /** 0 unknown, 1 kernel code, 2 native code, 3 managed code (of a language runtime). */
    readonly code: number;
    /** Number of the innermost function. */
    readonly called: number;
}

export function sampleValue(value: number): SampleValue {
    return { place: value & 15, code: (value >> 4) & 3, called: value >> 6 };
}

/** Indices into the list of values. */
export const UNINTERRUPTIBLE = 3;
const PAGE_FAULT = 7;
const CPU_STARVED = 9;
/** Indices of the groups. */
const RUNNING = 0;
const WAITING = 1;
export const INFERRED = 2;
export const UNSEEN = 3;

/** Below this many ns per pixel, samples at usual rates are wide enough for a colour of their own. */
export const CLOSE_NS = 4e6;

/** Colours of running code, by kind. */
export function codeColours(palette: Palette): readonly Packed[] {
    const { series, running } = palette;
    return [running, series[4] ?? running, series[1] ?? running, running];
}

/** Colour of a group in a pixel whose longest interval has that value. */
export function sampleColour(group: number, value: number, isClose: boolean, palette: Palette): Packed {
    const { place, code, called } = sampleValue(Math.max(value, 0));
    if (group === INFERRED) return palette.inferred;
    if (group === UNSEEN) return place === CPU_STARVED ? palette.runnable : palette.unseen;
    if (group === WAITING && place === UNINTERRUPTIBLE) return palette.blocked;
    if (value < 0) return group === RUNNING ? palette.running : palette.asleep;
    if (isClose) return group === RUNNING ? hashed(palette, called) : mixed(hashed(palette, called), palette.card, 0.62);
    return group === RUNNING ? (codeColours(palette)[code] ?? palette.running) : palette.asleep;
}

/** Whether a pixel of a group stays blank: unrecorded time is dotted, uninterruptible waits are hatched. */
export function isFree(group: number, value: number, x: number, y: number): boolean {
    const place = Math.max(value, 0) & 15;
    if (group === INFERRED) return place === PAGE_FAULT ? (x + y) % 3 !== 0 || x % 2 !== 0 : (x + y) % 2 !== 0;
    if (group === UNSEEN) return x % 3 !== 0 || y % 3 !== 0;
    return group === WAITING && place === UNINTERRUPTIBLE && (x + y) % 5 === 0;
}
