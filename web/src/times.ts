// Times inside the pages are ns since the start of the recording: doubles are exact up to 104 days.
import { toBig, type Exact } from "./exact";

/** From `begin` to `end`, ns since the start of the recording. */
export interface Span {
    readonly begin: number;
    readonly end: number;
}

export interface Clock {
    /** Start of the recording, ns since 1970. */
    readonly begin: bigint;
    readonly length: number;
    /** Name of a time zone, or an offset such as `+05:30`. */
    readonly zone: string | null;
    /** Clock of many recordings: times are shown with their date. */
    readonly isDated?: boolean;
}

export function sinceBegin(clock: Clock, ns: Exact): number {
    return Number(toBig(ns) - clock.begin);
}

export function span(clock: Clock, begin: Exact, end: Exact): Span {
    return { begin: sinceBegin(clock, begin), end: sinceBegin(clock, end) };
}

/** `+9.3180166s`, as on the command line; exact. */
export function offsetText(ns: number): string {
    const whole = BigInt(Math.round(ns));
    const size = whole < 0n ? -whole : whole;
    const fraction = (size % 1_000_000_000n).toString().padStart(9, "0").replace(/0+$/, "");
    return `+${size / 1_000_000_000n}${fraction ? `.${fraction}` : ""}s`;
}

/** `A..B` for `-w` and for URLs. */
export function spanText(window: Span): string {
    return `${offsetText(window.begin)}..${offsetText(window.end)}`;
}

export function parseSpan(text: string): Span | null {
    const found = /^\+(\d+(?:\.\d{1,9})?)s\.\.\+(\d+(?:\.\d{1,9})?)s$/.exec(text);
    if (!found?.[1] || !found[2]) return null;
    const window = { begin: parseSeconds(found[1]), end: parseSeconds(found[2]) };
    return window.end > window.begin ? window : null;
}

/** Parses the output of {@link offsetText}. */
export function parseOffset(text: string): number | null {
    const found = /^\+(\d+(?:\.\d{1,9})?)s$/.exec(text);
    return found?.[1] ? parseSeconds(found[1]) : null;
}

function parseSeconds(text: string): number {
    const [whole = "0", fraction = ""] = text.split(".");
    return Number(BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")));
}

/** Minutes east of Greenwich for a fixed offset; null for time zone names. */
function fixedOffset(zone: string): number | null {
    const found = /^([+-])(\d{2}):?(\d{2})$/.exec(zone);
    if (!found?.[2] || !found[3]) return null;
    return (found[1] === "-" ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3]));
}

const FORMATS = new Map<string, Intl.DateTimeFormat | null>();

function format(zone: string): Intl.DateTimeFormat | null {
    const known = FORMATS.get(zone);
    if (known !== undefined) return known;
    let made: Intl.DateTimeFormat | null = null;
    try {
        made = new Intl.DateTimeFormat("en-CA", {
            timeZone: zone,
            hourCycle: "h23",
            year: "numeric",
            month: "2-digit",
            day: "2-digit",
            hour: "2-digit",
            minute: "2-digit",
            second: "2-digit",
        });
    } catch {
        // Unknown to this browser: times are shown in UTC, and labelled so.
    }
    FORMATS.set(zone, made);
    return made;
}

interface Civil {
    readonly date: string;
    readonly time: string;
    /** ns within the second, nine digits. */
    readonly fraction: string;
    readonly zone: string;
}

export function civil(clock: Clock, ns: number): Civil {
    return civilAt(clock, clock.begin + BigInt(Math.round(ns)));
}

function civilAt(clock: Clock, absolute: bigint): Civil {
    const fraction = (((absolute % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n).toString().padStart(9, "0");
    const seconds = Number((absolute - BigInt(fraction)) / 1_000_000_000n);
    const zone = clock.zone ?? "+00:00";
    const minutes = fixedOffset(zone);
    const known = minutes === null ? format(zone) : null;
    if (known) {
        const parts = new Map(known.formatToParts(seconds * 1000).map((part) => [part.type, part.value]));
        const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? "";
        return {
            date: `${part("year")}-${part("month")}-${part("day")}`,
            time: `${part("hour")}:${part("minute")}:${part("second")}`,
            fraction,
            zone,
        };
    }
    const text = new Date((seconds + (minutes ?? 0) * 60) * 1000).toISOString();
    return { date: text.slice(0, 10), time: text.slice(11, 19), fraction, zone: minutes === null ? "UTC" : zone };
}

/** Time of day with enough decimals to distinguish times that are `step` ns apart. */
export function timeOfDay(clock: Clock, ns: number, step = 1000): string {
    const { time, fraction } = civil(clock, ns);
    const decimals = step >= 1e9 ? 0 : step >= 1e6 ? 3 : step >= 1e3 ? 6 : 9;
    return decimals ? `${time}.${fraction.slice(0, decimals)}` : time;
}

/** Date and time to the millisecond, without a fraction for whole seconds; exact, however far the clock's start is. */
export function dateTime(clock: Clock, ns: Exact): string {
    const { date, time, fraction } = civilAt(clock, toBig(ns));
    return /^0+$/.test(fraction) ? `${date} ${time}` : `${date} ${time}.${fraction.slice(0, 3)}`;
}

/** Label of an axis line: the time, or at midnight the date if the axis may cover several days. */
export function axisText(clock: Clock, ns: number, step: number): string {
    const { date, time } = civil(clock, ns);
    return clock.isDated && step >= 1e9 && time === "00:00:00" ? date : timeOfDay(clock, ns, step);
}

export function dateOf(clock: Clock, ns: number): string {
    return civil(clock, ns).date;
}

export function length(window: Span): number {
    return window.end - window.begin;
}

export function contains(window: Span, ns: number): boolean {
    return ns >= window.begin && ns < window.end;
}

/** Moved into the recording, at least `least` ns long, in whole ns. */
export function clamp(window: Span, total: number, least = 10): Span {
    const size = Math.min(Math.max(length(window), least), Math.max(total, least));
    const begin = Math.min(Math.max(window.begin, 0), Math.max(total - size, 0));
    return { begin: Math.round(begin), end: Math.round(begin + size) };
}

/** `factor` times as long, around the same point. */
export function zoomed(window: Span, factor: number, at = (window.begin + window.end) / 2): Span {
    return { begin: at - (at - window.begin) * factor, end: at + (window.end - at) * factor };
}

/** With a margin before and after. */
export function withMargin(window: Span, share = 0.15): Span {
    const margin = Math.max(length(window) * share, 1000);
    return { begin: window.begin - margin, end: window.end + margin };
}
