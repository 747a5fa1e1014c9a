// What the page of threads shares: its lanes, who waited for whom, and the moment whose stacks are shown.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { ApiError, Parameters } from "./api";
import { api, clock, recording, shown } from "./app";
import { useAnswer } from "./ask";
import type { Lane, Link } from "./charts/index";
import { toNumber } from "./exact";
import { GAPS_MAX, LANES_MAX, WAITS_MAX } from "./limits";
import { choose } from "./selection";
import { common, go, view } from "./state";
import { offsetText, parseOffset, sinceBegin } from "./times";
import { lanesOf, type Track } from "./tracks";
import type { Answer, Row } from "./types";

/** Numbers of threads that fit into an address. */
const TIDS_MAX = 400;

/** Threads that something besides the chart means, by the names that a dump has for them. */
export const meant = signal<ReadonlySet<string>>(new Set());
/** What questions have to be asked with for the threads that the pattern leaves. */
export const chosenThreads = signal<Parameters>({});
/** Where the cursor of the chart was last. */
export const lastMoment = signal<number | null>(null);

/** A thread as dumps name it. */
export function nameOf(lane: Lane): string {
    if (lane.tid === null) return lane.name;
    return lane.name === "" ? String(lane.tid) : `${lane.name} ${lane.tid}`;
}

export function hasRows(table: string): boolean {
    return (recording.value?.rows[table] ?? 0) > 0;
}

export interface Threads {
    readonly lanes: readonly Lane[];
    readonly states: Track | null;
    readonly samples: Track | null;
    /** Lanes there are beyond those that were asked for. */
    readonly hidden: number;
    readonly failure: ApiError | null;
    readonly isPending: boolean;
}

/** Lanes of threads, of whom there are states, samples or both. */
export function useThreads(): Threads {
    const of = recording.value;
    const isReady = of?.tiles.state === "ready" || api.value?.isReport === true;
    const { pid, tid, comm, w } = common.value;
    const whose: Parameters = { limit: LANES_MAX, pid, tid, comm, w };
    const states = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isReady ? { track: "states", ...whose } : null);
    const isSampled = isReady && hasRows("stack_sample");
    const samples = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isSampled ? { track: "samples", ...whose } : null);
    const [a, b] = [states.answer?.tracks[0] ?? null, samples.answer?.tracks[0] ?? null];
    const lanes = useMemo(() => {
        const known = a ? lanesOf(a) : [];
        const ids = new Set(known.map((lane) => lane.lane));
        return [...known, ...(b ? lanesOf(b) : []).filter((lane) => !ids.has(lane.lane))];
    }, [a, b]);
    return {
        lanes,
        states: a,
        samples: b,
        hidden: Math.max((a?.total ?? 0) - (a?.lanes.length ?? 0), (b?.total ?? 0) - (b?.lanes.length ?? 0)),
        failure: states.failure ?? samples.failure,
        isPending: states.isPending || samples.isPending || (a === null && !states.failure),
    };
}

/** A wait for a lock, and who held it. */
export interface Wait {
    readonly lane: Lane;
    readonly holder: Lane | null;
    readonly begin: number;
    readonly end: number;
    readonly lock: string;
    readonly doing: string;
    readonly confidence: "high" | "medium" | "low";
}

/** A time without samples that tells something of the program. */
export interface Silence {
    /** Null where it is of all threads. */
    readonly lane: Lane | null;
    readonly begin: number;
    readonly end: number;
    readonly kind: string;
    readonly endedIn: string;
    /** Silences that share most of their time have one number. */
    readonly group: number | null;
}

function text(row: Row, key: string): string {
    const cell = row[key];
    return typeof cell === "string" ? cell : "";
}

function time(row: Row, key: string): number | null {
    const cell = row[key];
    return typeof cell === "number" || typeof cell === "string" ? sinceBegin(clock.value, cell) : null;
}

function whole(row: Row, key: string): number | null {
    const cell = row[key];
    return typeof cell === "number" || typeof cell === "string" ? toNumber(cell) : null;
}

function byTid(lanes: readonly Lane[]): ReadonlyMap<number, Lane> {
    return new Map(lanes.flatMap((lane) => (lane.tid === null ? [] : [[lane.tid, lane] as const])));
}

function windowed(parameters: Parameters): Parameters {
    return { ...parameters, ...(common.value["w"] ? { w: common.value["w"] } : {}) };
}

/** Who waited for whom in the window, the longest waits of each kind of lock. */
export function useWaits(lanes: readonly Lane[], isWanted: boolean): readonly Wait[] {
    const asked = useAnswer<Answer>("table", isWanted && hasRows("lock_wait") ? windowed({ what: "locks", view: "top", limit: WAITS_MAX }) : null);
    return useMemo(() => waitsOf(asked.answer?.tables.flatMap((table) => table.rows) ?? [], lanes), [asked.answer, lanes]);
}

function waitsOf(rows: readonly Row[], lanes: readonly Lane[]): readonly Wait[] {
    const known = byTid(lanes);
    return rows.flatMap((row) => {
        const lane = known.get(whole(row, "tid") ?? -1);
        const [begin, end] = [time(row, "ts_ns"), time(row, "ts_end_ns")];
        if (!lane || begin === null || end === null) return [];
        const confidence = text(row, "confidence");
        return [
            {
                lane,
                holder: known.get(whole(row, "holder_tid") ?? -1) ?? null,
                begin,
                end,
                lock: text(row, "object") || `${text(row, "kind")} ${text(row, "lock")}`,
                doing: text(row, "holder_function"),
                confidence: confidence === "high" || confidence === "medium" ? confidence : ("low" as const),
            },
        ];
    });
}

/** Times without samples in the window. */
export function useSilences(lanes: readonly Lane[]): readonly Silence[] {
    const asked = useAnswer<Answer>("table", hasRows("sample_gap") ? windowed({ what: "threads", view: "gaps", limit: GAPS_MAX }) : null);
    return useMemo(() => {
        const known = byTid(lanes);
        const table = asked.answer?.tables.find((one) => one.name === "gaps");
        return (table?.rows ?? []).flatMap((row) => {
            const [begin, end] = [time(row, "ts_ns"), time(row, "ts_end_ns")];
            if (begin === null || end === null) return [];
            const lane = known.get(whole(row, "tid") ?? -1) ?? null;
            const kind = text(row, "class");
            if (!lane && kind !== "process_stopped") return [];
            return [{ lane, begin, end, kind, endedIn: text(row, "function"), group: whole(row, "group_id") }];
        });
    }, [asked.answer, lanes]);
}

/** Those that were silent in the same time as another, the longest of it first. */
export function together(silences: readonly Silence[], one: Silence): readonly Silence[] {
    const shared = (other: Silence) => Math.min(one.end, other.end) - Math.max(one.begin, other.begin);
    return silences
        .filter((other) => other.group !== null && other.group === one.group && other.lane !== null && other.lane !== one.lane && shared(other) > 0)
        .sort((a, b) => shared(b) - shared(a));
}

export function linksOf(waits: readonly Wait[], silences: readonly Silence[]): readonly Link[] {
    const arrows = waits.flatMap((wait) =>
        wait.holder === null || wait.holder === wait.lane
            ? []
            : [{ from: wait.lane.lane, to: wait.holder.lane, begin: wait.begin, end: wait.end, surety: wait.confidence, isArrow: true }],
    );
    const pairs = silences.flatMap((one) =>
        together(silences, one).flatMap((other) =>
            one.lane && other.lane && one.lane.lane < other.lane.lane
                ? [
                      {
                          from: one.lane.lane,
                          to: other.lane.lane,
                          begin: Math.max(one.begin, other.begin),
                          end: Math.min(one.end, other.end),
                          surety: "low" as const,
                          isArrow: false,
                      },
                  ]
                : [],
        ),
    );
    return [...arrows, ...pairs];
}

/** Where a link leads from a moment of a lane: to who held the lock, else to who was silent at the same time. */
export function followed(waits: readonly Wait[], silences: readonly Silence[], lane: Lane, at: number): { readonly lane: Lane; readonly at: number; readonly says: string } | null {
    const holds = (one: { readonly begin: number; readonly end: number }) => one.begin <= at && at < one.end;
    const wait = waits.find((one) => one.lane === lane && one.holder && one.holder !== lane && holds(one));
    if (wait?.holder) {
        const { holder } = wait;
        const silent = silences.find((one) => one.lane === holder && one.begin < wait.end && one.end > wait.begin);
        const moment = silent && !holds(silent) ? middle(Math.max(silent.begin, wait.begin), Math.min(silent.end, wait.end)) : at;
        return { lane: holder, at: moment, says: `${lane.name} waited for ${wait.lock}, held by ${nameOf(holder)} (${wait.confidence} confidence), which was in ${wait.doing || "code without a name"}` };
    }
    const silence = silences.find((one) => one.lane === lane && holds(one));
    const others = silence ? together(silences, silence) : [];
    const other = others.find((one) => one.endedIn !== silence?.endedIn) ?? others[0];
    if (!silence || !other?.lane) return null;
    const moment = holds(other) ? at : middle(Math.max(other.begin, silence.begin), Math.min(other.end, silence.end));
    return { lane: other.lane, at: moment, says: `silent at the same time as ${nameOf(lane)}: ${nameOf(other.lane)}, in ${other.endedIn}` };
}

function middle(begin: number, end: number): number {
    return Math.floor((begin + end) / 2);
}

/** The next moment of a lane at which it waited for a lock or was silent. */
export function nextMoment(waits: readonly Wait[], silences: readonly Silence[], lane: Lane, at: number, isBack: boolean): number | null {
    const { begin, end } = shown.value;
    const middles = [...waits, ...silences]
        .filter((one) => one.lane === lane && one.begin < end && one.end > begin)
        .map((one) => middle(Math.max(one.begin, begin), Math.min(one.end, end)))
        .sort((a, b) => a - b);
    return (isBack ? middles.reverse().find((one) => one < at - 1) : middles.find((one) => one > at + 1)) ?? null;
}

/** The moment whose stacks are shown. */
export function shownMoment(): number | null {
    const { page, options } = view.value;
    return page === "threads" ? parseOffset(options["dump"] ?? "") : null;
}

/** Where the cursor is, or the middle of what is seen. */
export function cursorMoment(): number {
    const { begin, end } = shown.value;
    const at = lastMoment.value;
    return at !== null && at >= begin && at < end ? at : middle(begin, end);
}

/** Shows the stacks of a moment, those of one thread first. */
export function showMoment(at: number, lane: Lane | null): void {
    choose(null);
    const options = { ...view.value.options, dump: offsetText(Math.floor(at)), ...(lane ? { at: keyOf(lane) } : {}) };
    go({ options }, true);
}

export function hideMoment(): void {
    const { dump: _, ...options } = view.value.options;
    meant.value = new Set();
    go({ options }, true);
}

/** What the address has for a lane that is looked at. */
export function keyOf(lane: Lane): string {
    return lane.tid === null ? lane.name : String(lane.tid);
}

export function patternOf(text: string): RegExp | null | "wrong" {
    if (text === "") return null;
    try {
        return new RegExp(text, "i");
    } catch {
        return "wrong";
    }
}

/** Questions about the lanes that a pattern leaves, of so many: by number, or by the pattern where no number will do. */
export function askedOf(lanes: readonly Lane[], all: number, pattern: RegExp): Parameters {
    if (lanes.length === all) return {};
    const tids = lanes.flatMap((lane) => (lane.tid === null ? [] : [String(lane.tid)]));
    if (tids.length === 0 || tids.length < lanes.length || tids.length > TIDS_MAX) return { threads: `(?i)${pattern.source}` };
    return { tid: tids.join(",") };
}
