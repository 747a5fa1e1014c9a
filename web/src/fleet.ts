// A lake with recordings of many hosts: its queries, their parameters in the page URL, and the way from a
// row to its recording.
import type { Parameters } from "./api";
import { type Exact, toBig } from "./exact";
import { isReserved, quoted } from "./state";
import type { Clock, Span } from "./times";
import type { Cell, RecordingInfo, Row } from "./types";

export interface FleetParameter {
    readonly name: string;
    readonly default: string | null;
    readonly about: string;
    /** A switch without a value. */
    readonly flag: boolean;
}

export interface FleetQuery {
    readonly name: string;
    readonly about: string;
    readonly more: string;
    readonly parameters: readonly FleetParameter[];
}

export interface FleetInfo {
    readonly lake: string | null;
    readonly queries: readonly FleetQuery[];
}

export type Options = Readonly<Record<string, string>>;

interface FleetTab {
    /** Name of the query. */
    readonly id: string;
    readonly title: string;
    /** Shown if the response has no rows. */
    readonly none: string;
}

const FLEET_TABS: readonly FleetTab[] = [
    { id: "heat", title: "heat map", none: "no operations of these hosts in this window" },
    { id: "deviations", title: "deviations", none: "no deviations from peers; check “all” to show every comparison" },
    { id: "verdicts", title: "verdicts", none: "no verdicts on these hosts in this window" },
    { id: "culprits", title: "culprits", none: "no culprits found" },
    { id: "shift", title: "shifts", none: "no shifts found; check “all” to show series without one" },
    { id: "rollout", title: "before and after", none: "nothing to compare" },
    { id: "percentiles", title: "percentiles", none: "no operations of these hosts in this window" },
    { id: "slowest", title: "slowest", none: "no slow operation started in this window; the lake stores only the slowest operations of each recording" },
    { id: "hosts", title: "hosts", none: "no recordings of these hosts in this window" },
];

export function fleetTabs(info: FleetInfo): readonly FleetTab[] {
    return FLEET_TABS.filter((tab) => info.queries.some((query) => query.name === tab.id));
}

/** The tab named in the page URL, else the first. */
export function fleetTab(info: FleetInfo, options: Options): FleetTab | null {
    const tabs = fleetTabs(info);
    return tabs.find((tab) => tab.id === options["tab"]) ?? tabs[0] ?? null;
}

export function queryOf(info: FleetInfo, name: string): FleetQuery | null {
    return info.queries.find((query) => query.name === name) ?? null;
}

/** A field of the query form. */
export interface Field {
    /** Key in the page URL. */
    readonly option: string;
    readonly label: string;
    readonly about: string;
    /** Placeholder that shows the default. */
    readonly placeholder: string;
    readonly isFlag: boolean;
}

/** Parameters of every query: key in the page URL, name for the server, label, description, example. */
const COMMON: readonly (readonly [string, string, string, string, string])[] = [
    ["hosts", "hosts", "hosts", "host names or patterns, separated by commas", "web-*"],
    ["cluster", "cluster", "cluster", "cluster names or patterns", "all"],
    ["when", "window", "window", "times in UTC; -1h.. is the last hour", "-1h.., or A..B"],
];

/** Keys with a meaning of their own on this page. */
const OWN = new Set(["tab", "colour", "order", ...COMMON.map(([option]) => option)]);

/** Key of a parameter in the page URL, where some names have another meaning. */
export function optionOf(name: string): string {
    return OWN.has(name) || isReserved(name) ? `for-${name}` : name;
}

/** The heat map always requests as many cells as are allowed. */
function takes(query: FleetQuery, parameter: FleetParameter): boolean {
    return query.name !== "heat" || parameter.name !== "limit";
}

export function fieldsOf(query: FleetQuery): readonly Field[] {
    const own = query.parameters.filter((parameter) => takes(query, parameter));
    return [
        ...COMMON.map(([option, , label, about, placeholder]) => ({ option, label, about, placeholder, isFlag: false })),
        ...own.map((parameter) => ({
            option: optionOf(parameter.name),
            label: parameter.name,
            about: parameter.about,
            placeholder: query.name === "heat" && parameter.name === "bin" ? "auto" : (parameter.default ?? ""),
            isFlag: parameter.flag,
        })),
    ];
}

/** Request parameters of a query: those of the page's options that it knows. */
export function parametersOf(query: FleetQuery, options: Options): Parameters {
    const found: Record<string, string> = { query: query.name };
    for (const [option, name] of COMMON) {
        const value = options[option]?.trim();
        if (value) found[name] = value;
    }
    for (const parameter of query.parameters) {
        const value = takes(query, parameter) ? options[optionOf(parameter.name)]?.trim() : undefined;
        if (value) found[parameter.name] = value;
    }
    return found;
}

/** The query of the page as a command line. */
export function fleetCommand(lake: string, parameters: Parameters): string {
    const { query, ...rest } = parameters;
    const words = Object.entries(rest).map(([key, value]) => {
        const flag = `--${key.replace(/_/g, "-")}`;
        return value === "true" ? flag : quoted(`${flag}=${value ?? ""}`);
    });
    return ["whyslow", "fleet", query, ...words, "--lake", quoted(lake)].join(" ");
}

/** Clock for times of a lake: shown with their date, in UTC, since no single recording's zone applies. */
export const LAKE_CLOCK: Clock = { begin: 0n, length: 1, zone: "+00:00", isDated: true };

const SECOND = 1_000_000_000n;

/** A time as `-w` accepts it, in UTC to the nanosecond. */
export function timeText(ns: bigint): string {
    const fraction = ((ns % SECOND) + SECOND) % SECOND;
    const text = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, 19);
    return `${text}${fraction ? `.${fraction.toString().padStart(9, "0").replace(/0+$/, "")}` : ""}Z`;
}

export interface Range {
    readonly begin: bigint;
    readonly end: bigint;
}

export function rangeText(range: Range): string {
    return `${timeText(range.begin)}..${timeText(range.end)}`;
}

export function exactOf(cell: Cell | undefined): bigint | null {
    const isWhole = typeof cell === "number" ? Number.isSafeInteger(cell) : typeof cell === "string" && /^-?\d+$/.test(cell);
    return isWhole ? toBig(cell as Exact) : null;
}

/** Round cell lengths, seconds. */
const BINS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];
/** Keeps each cell a few pixels wide. */
const COLUMNS_MAX = 240;
/** Maximum number of rows in a `heat` response. */
export const CELLS_MAX = 100_000;

/** Cell length of a map, s: the shortest that fits both the page and the response. */
export function binFor(length_ns: bigint, hosts: number): number {
    const room = Math.max(Math.min(COLUMNS_MAX, Math.floor(CELLS_MAX / Math.max(hosts, 1))), 1);
    const length = Number(length_ns) / 1e9;
    const last = BINS[BINS.length - 1] ?? 1;
    return BINS.find((bin) => length / bin <= room) ?? last * Math.ceil(length / last / room);
}

const UNITS: Readonly<Record<string, bigint>> = {
    ns: 1n,
    us: 1000n,
    ms: 1_000_000n,
    s: SECOND,
    m: 60n * SECOND,
    h: 3600n * SECOND,
    d: 86_400n * SECOND,
};

/** Parses a duration as typed (`10s`, `5m`; without a unit ns); the result is in ns. */
export function parseLength(text: string): bigint | null {
    const found = /^(\d+)\s*(ns|us|ms|s|m|h|d)?$/.exec(text.trim());
    const unit = UNITS[found?.[2] ?? "ns"];
    const size = found?.[1] && unit ? BigInt(found[1]) * unit : 0n;
    return size > 0n ? size : null;
}

/** Time range of the recordings in a `hosts` response, within the requested window. */
export function rangeOf(rows: readonly Row[], window: Range | null): Range | null {
    let begin: bigint | null = null;
    let end: bigint | null = null;
    for (const row of rows) {
        const [first, last] = [exactOf(row["first_ts"]), exactOf(row["last_ts"])];
        if (first !== null && (begin === null || first < begin)) begin = first;
        if (last !== null && (end === null || last > end)) end = last;
    }
    if (begin === null || end === null) return null;
    if (window && window.begin > begin) begin = window.begin;
    if (window && window.end < end) end = window.end;
    return end > begin ? { begin, end } : null;
}

/** The recording and operation that a row refers to. */
export interface Lead {
    readonly host: string;
    readonly recording: string;
    readonly id: string | null;
    /** Null where the row has no time. */
    readonly when: Range | null;
}

/** Columns with a start time, and the length assumed where the row has none: a worst second lasts one. */
const BEGINS: readonly (readonly [string, bigint])[] = [
    ["ts", 0n],
    ["worst_ts", SECOND],
];

/** For rows of a heat map, `bin` is the length of a cell. */
export function leadOf(row: Row, bin: bigint | null = null): Lead | null {
    const { host, recording, id } = row;
    if (typeof host !== "string" || typeof recording !== "string") return null;
    const [name, usual] = BEGINS.find(([name]) => exactOf(row[name]) !== null) ?? [null, 0n];
    const begin = name === null ? null : exactOf(row[name]);
    const length = bin ?? exactOf(row["dur"]) ?? usual;
    return {
        host,
        recording,
        id: typeof id === "string" ? id : null,
        when: begin === null ? null : { begin, end: begin + (length > 0n ? length : 1n) },
    };
}

/** Commands that lead from the row to the cause. */
export function commandsOf(lead: Lead, lake: string): readonly string[] {
    const of = `${quoted(lead.recording)} --lake ${quoted(lake)}`;
    const file = quoted(`${lead.host}-${lead.recording}.wsl.tar.zst`);
    const window = lead.id ? ` -w ${quoted(lead.id)}` : lead.when ? ` -w ${quoted(rangeText(lead.when))}` : "";
    return [`whyslow fleet find ${of}`, `whyslow fleet fetch ${of}`, `whyslow explain ${file}${window}`];
}

/** Digits of ids (Crockford base 32), by value. */
const ID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Number of leading digits that encode the start of the recording, ms since 1970. */
const ID_TIME_DIGITS = 10;

/** Start of a recording from its id in the lake, ms; null if the id is malformed. */
function beginOf(id: string): bigint | null {
    const digits = [...id.slice(0, ID_TIME_DIGITS)].map((digit) => ID_DIGITS.indexOf(digit));
    if (digits.length < ID_TIME_DIGITS || digits.includes(-1)) return null;
    return digits.reduce((ms, digit) => ms * 32n + BigInt(digit), 0n);
}

export interface Open {
    readonly recording: RecordingInfo;
    /** Position of the row in it; null for rows without a time. */
    readonly window: Span | null;
}

/** An open recording of the row's host that covers the row's time or, for rows without one, has the same start. */
export function openOf(lead: Lead, recordings: readonly RecordingInfo[]): Open | null {
    const { when } = lead;
    const started = beginOf(lead.recording);
    for (const recording of recordings) {
        if (recording.host !== lead.host) continue;
        const [begin, end] = [toBig(recording.begin_ns), toBig(recording.end_ns)];
        if (!when && started === begin / 1_000_000n) return { recording, window: null };
        // A second or a cell may start before the recording does.
        if (!when || when.begin >= end || when.end <= begin) continue;
        return { recording, window: { begin: Number(when.begin - begin), end: Number(when.end - begin) } };
    }
    return null;
}
