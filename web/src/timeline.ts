// The drawing of a finding: bars of the culprit and its victims on one time axis.
import { type Clock, length, type Span, span, timeOfDay } from "./times";
import type { TimelineRow } from "./types";
import { duration } from "./units";

export interface Bar {
    readonly row: TimelineRow;
    readonly window: Span;
    /** Position and width in per cent of the axis. */
    readonly left: number;
    readonly width: number;
}

export interface Tick {
    /** In per cent of the axis. */
    readonly at: number;
    readonly text: string;
}

export interface Timeline {
    readonly bars: readonly Bar[];
    readonly ticks: readonly Tick[];
}

/** Width of the shortest bars, in per cent: visible, but not mistaken for a duration. */
const WIDTH_MIN = 0.4;

/** Bars over the time that all rows cover; null without rows. */
export function timelineOf(clock: Clock, rows: readonly TimelineRow[]): Timeline | null {
    const windows = rows.map((row) => span(clock, row.begin_ns, row.end_ns));
    const frame = { begin: Math.min(...windows.map((one) => one.begin)), end: Math.max(...windows.map((one) => one.end)) };
    const size = length(frame);
    if (rows.length === 0 || size <= 0) return null;
    const place = (ns: number) => ((ns - frame.begin) / size) * 100;
    const bars = rows.flatMap((row, at) => {
        const window = windows[at];
        if (!window) return [];
        const width = Math.max(place(window.end) - place(window.begin), WIDTH_MIN);
        return [{ row, window, left: Math.min(place(window.begin), 100 - width), width }];
    });
    return { bars, ticks: ticksOf(clock, frame) };
}

/** The start as a time of day, then offsets from it. */
function ticksOf(clock: Clock, frame: Span): readonly Tick[] {
    const size = length(frame);
    const step = roundStep(size / 4);
    const ticks = [{ at: 0, text: timeOfDay(clock, frame.begin, size / 100) }];
    // The last label needs room before the end of the axis.
    for (let ns = step; ns <= size * 0.94; ns += step) ticks.push({ at: (ns / size) * 100, text: `+${duration(ns)}` });
    return ticks;
}

/** 1, 2 or 5 times a power of ten, at least `ns`. */
export function roundStep(ns: number): number {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    const times = [1, 2, 5, 10].find((one) => one * power >= ns * 0.999) ?? 10;
    return times * power;
}
