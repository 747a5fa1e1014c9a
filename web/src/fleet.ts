// A lake of many hosts' recordings: its questions, how their choices stand in the address, and what leads
// from a row to the recording it is of.
import type { Parameters } from "./api";
import { type Exact, toBig } from "./exact";
import { isReserved, quoted } from "./state";
import type { Clock, Span } from "./times";
import type { Cell, RecordingInfo, Row } from "./types";

export interface FleetParameter {
    readonly name: string;
    readonly default: string | null;
    readonly about: string;
    /** Said or not, without a value. */
    readonly flag: boolean;
}

export interface FleetQuestion {
    readonly name: string;
    readonly about: string;
    readonly more: string;
    readonly parameters: readonly FleetParameter[];
}

export interface FleetInfo {
    readonly lake: string | null;
    readonly questions: readonly FleetQuestion[];
}

export type Options = Readonly<Record<string, string>>;

interface FleetTab {
    /** Name of the question. */
    readonly id: string;
    readonly title: string;
    /** What an answer without rows means. */
    readonly none: string;
}

const FLEET_TABS: readonly FleetTab[] = [
    { id: "heat", title: "heat map", none: "no operation of these hosts in this window" },
    { id: "deviations", title: "deviations", none: "nothing deviates from its peers; “all” shows the others, too" },
    { id: "verdicts", title: "verdicts", none: "no verdict on these hosts in this window" },
    { id: "culprits", title: "culprits", none: "nobody was found to be the culprit of anything" },
    { id: "shift", title: "shifts", none: "no shift was found; “all” shows those without one, too" },
    { id: "rollout", title: "before and after", none: "nothing to compare" },
    { id: "percentiles", title: "percentiles", none: "no operation of these hosts in this window" },
    { id: "slowest", title: "slowest", none: "none of the slowest operations of each recording, which are all that the lake has, began in this window" },
    { id: "hosts", title: "hosts", none: "the lake has no recording of such hosts in this window" },
];

export function fleetTabs(info: FleetInfo): readonly FleetTab[] {
    return FLEET_TABS.filter((tab) => info.questions.some((question) => question.name === tab.id));
}

/** The tab that an address names, else the first. */
export function fleetTab(info: FleetInfo, options: Options): FleetTab | null {
    const tabs = fleetTabs(info);
    return tabs.find((tab) => tab.id === options["tab"]) ?? tabs[0] ?? null;
}

export function questionOf(info: FleetInfo, name: string): FleetQuestion | null {
    return info.questions.find((question) => question.name === name) ?? null;
}

/** A choice in the form above a question. */
export interface Field {
    /** Key in the address. */
    readonly option: string;
    readonly label: string;
    readonly about: string;
    /** What holds without it. */
    readonly placeholder: string;
    readonly isFlag: boolean;
}

/** Choices of every question: key of the address, name for the server, label, what it means, an example. */
const COMMON: readonly (readonly [string, string, string, string, string])[] = [
    ["hosts", "hosts", "hosts", "only hosts that match, with commas between several", "web-*"],
    ["cluster", "cluster", "cluster", "only clusters that match", "all"],
    ["when", "window", "window", "times are in UTC; -1h.. is the last hour", "-1h.., or A..B"],
];

/** Keys that the page itself has. */
const OWN = new Set(["tab", "colour", "order", ...COMMON.map(([option]) => option)]);

/** Where a parameter stands in the address: some keys have another meaning there. */
export function optionOf(name: string): string {
    return OWN.has(name) || isReserved(name) ? `for-${name}` : name;
}

/** A map shows all that it may. */
function takes(question: FleetQuestion, parameter: FleetParameter): boolean {
    return question.name !== "heat" || parameter.name !== "limit";
}

export function fieldsOf(question: FleetQuestion): readonly Field[] {
    const own = question.parameters.filter((parameter) => takes(question, parameter));
    return [
        ...COMMON.map(([option, , label, about, placeholder]) => ({ option, label, about, placeholder, isFlag: false })),
        ...own.map((parameter) => ({
            option: optionOf(parameter.name),
            label: parameter.name,
            about: parameter.about,
            placeholder: question.name === "heat" && parameter.name === "bin" ? "as fits" : (parameter.default ?? ""),
            isFlag: parameter.flag,
        })),
    ];
}

/** A question as the server takes it: of the choices on the page those that it knows. */
export function parametersOf(question: FleetQuestion, options: Options): Parameters {
    const found: Record<string, string> = { question: question.name };
    for (const [option, name] of COMMON) {
        const value = options[option]?.trim();
        if (value) found[name] = value;
    }
    for (const parameter of question.parameters) {
        const value = takes(question, parameter) ? options[optionOf(parameter.name)]?.trim() : undefined;
        if (value) found[parameter.name] = value;
    }
    return found;
}

/** What the page asks, in the terminal. */
export function fleetCommand(lake: string, parameters: Parameters): string {
    const { question, ...rest } = parameters;
    const words = Object.entries(rest).map(([key, value]) => {
        const flag = `--${key.replace(/_/g, "-")}`;
        return value === "true" ? flag : quoted(`${flag}=${value ?? ""}`);
    });
    return ["whyslow", "fleet", question, ...words, "--lake", quoted(lake)].join(" ");
}

/** Of times of a lake: they are of many days, and no recording's zone is theirs. */
export const LAKE_CLOCK: Clock = { begin: 0n, length: 1, zone: "+00:00", isDated: true };

const SECOND = 1_000_000_000n;

/** A time as `-w` takes it, in UTC to the nanosecond. */
export function momentText(ns: bigint): string {
    const fraction = ((ns % SECOND) + SECOND) % SECOND;
    const text = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, 19);
    return `${text}${fraction ? `.${fraction.toString().padStart(9, "0").replace(/0+$/, "")}` : ""}Z`;
}

export interface Range {
    readonly begin: bigint;
    readonly end: bigint;
}

export function rangeText(range: Range): string {
    return `${momentText(range.begin)}..${momentText(range.end)}`;
}

export function exactOf(cell: Cell | undefined): bigint | null {
    const isWhole = typeof cell === "number" ? Number.isSafeInteger(cell) : typeof cell === "string" && /^-?\d+$/.test(cell);
    return isWhole ? toBig(cell as Exact) : null;
}

/** Lengths of cells that people can count in, seconds. */
const BINS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];
/** A cell has some pixels then. */
const COLUMNS_MAX = 240;
/** Rows of an answer of `heat`. */
export const CELLS_MAX = 100_000;

/** Length of the cells of a map, s: the least that a page and an answer have room for. */
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

/** A length as it is typed, ns: `10s`, `5m`; without a unit ns. */
export function parseLength(text: string): bigint | null {
    const found = /^(\d+)\s*(ns|us|ms|s|m|h|d)?$/.exec(text.trim());
    const unit = UNITS[found?.[2] ?? "ns"];
    const size = found?.[1] && unit ? BigInt(found[1]) * unit : 0n;
    return size > 0n ? size : null;
}

/** When the recordings were made that an answer of `hosts` tells of, within the window that was asked for. */
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

/** What a row leads to. */
export interface Lead {
    readonly host: string;
    readonly recording: string;
    readonly id: string | null;
    /** When that was; null where the row is of no time. */
    readonly when: Range | null;
}

/** Begins of what rows tell of, and how long that is where the row does not say: a second that was worst. */
const BEGINS: readonly (readonly [string, bigint])[] = [
    ["ts", 0n],
    ["worst_ts", SECOND],
];

/** Of rows of a heat map, `bin` is how long a cell is. */
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

/** From the row to the cause, in the terminal. */
export function commandsOf(lead: Lead, lake: string): readonly string[] {
    const of = `${quoted(lead.recording)} --lake ${quoted(lake)}`;
    const file = quoted(`${lead.host}-${lead.recording}.wsl.tar.zst`);
    const window = lead.id ? ` -w ${quoted(lead.id)}` : lead.when ? ` -w ${quoted(rangeText(lead.when))}` : "";
    return [`whyslow fleet find ${of}`, `whyslow fleet fetch ${of}`, `whyslow explain ${file}${window}`];
}

/** Letters of ids, by their value. */
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** So many of them tell when the recording began, ms since 1970. */
const TIME_LETTERS = 10;

/** Begin of a recording by its id in the lake, ms; null if that is no such id. */
function beginOf(id: string): bigint | null {
    const letters = [...id.slice(0, TIME_LETTERS)].map((letter) => LETTERS.indexOf(letter));
    if (letters.length < TIME_LETTERS || letters.includes(-1)) return null;
    return letters.reduce((ms, letter) => ms * 32n + BigInt(letter), 0n);
}

export interface Open {
    readonly recording: RecordingInfo;
    /** Where in it the row is; null for rows of no time. */
    readonly window: Span | null;
}

/** A recording of the row's host that is open here and has the row's time, or, of rows without one, its begin. */
export function openOf(lead: Lead, recordings: readonly RecordingInfo[]): Open | null {
    const { when } = lead;
    const began = beginOf(lead.recording);
    for (const recording of recordings) {
        if (recording.host !== lead.host) continue;
        const [begin, end] = [toBig(recording.begin_ns), toBig(recording.end_ns)];
        if (!when && began === begin / 1_000_000n) return { recording, window: null };
        // A second, or a cell, may have begun before the recording did.
        if (!when || when.begin >= end || when.end <= begin) continue;
        return { recording, window: { begin: Number(when.begin - begin), end: Number(when.end - begin) } };
    }
    return null;
}
