// State of the Threads page: lanes, lock waits, sampling gaps, and the time of the thread dump shown.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { ApiError, Parameters } from "./api";
import { api, clock, recording, shown } from "./app";
import { useAnswer } from "./query";
import type { Lane, Link } from "./charts/index";
import { toNumber } from "./exact";
import { GAPS_MAX, LANES_MAX, WAITS_MAX } from "./limits";
import { choose } from "./selection";
import { common, go, view } from "./state";
import { offsetText, parseOffset, sinceBegin } from "./times";
import { lanesOf, type Track } from "./tracks";
import type { Answer, Row } from "./types";

/** Number of thread ids that fit into a URL. */
const TIDS_MAX = 400;

/** Threads highlighted in the chart by the thread dump, by their names there. */
export const highlighted = signal<ReadonlySet<string>>(new Set());
/** Request parameters that select the threads matching the pattern. */
export const chosenThreads = signal<Parameters>({});
/** Last position of the chart's cursor. */
export const lastCursor = signal<number | null>(null);

/** Name of a thread in thread dumps. */
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
    /** Number of lanes beyond the requested ones. */
    readonly hidden: number;
    readonly failure: ApiError | null;
    readonly isPending: boolean;
}

/** Lanes of threads that have states, samples or both. */
export function useThreads(): Threads {
    const of = recording.value;
    const isReady = of?.tiles.state === "ready" || api.value?.isReport === true;
    const { pid, tid, comm, w } = common.value;
    const laneFilter: Parameters = { limit: LANES_MAX, pid, tid, comm, w };
    const states = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isReady ? { track: "states", ...laneFilter } : null);
    const isSampled = isReady && hasRows("stack_sample");
    const samples = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isSampled ? { track: "samples", ...laneFilter } : null);
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

/** A lock wait and the holder of the lock. */
export interface Wait {
    readonly lane: Lane;
    readonly holder: Lane | null;
    readonly begin: number;
    readonly end: number;
    readonly lock: string;
    readonly doing: string;
    readonly confidence: "high" | "medium" | "low";
}

/** A sampling gap of a thread or of the whole process. */
export interface SampleGap {
    /** Null for a gap of all threads. */
    readonly lane: Lane | null;
    readonly begin: number;
    readonly end: number;
    readonly kind: string;
    readonly endedIn: string;
    /** Gaps that share most of their time have the same number. */
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

/** The longest lock waits in the window, of each kind of lock. */
export function useWaits(lanes: readonly Lane[], isWanted: boolean): readonly Wait[] {
    const query = useAnswer<Answer>("table", isWanted && hasRows("lock_wait") ? windowed({ what: "locks", view: "top", limit: WAITS_MAX }) : null);
    return useMemo(() => waitsOf(query.answer?.tables.flatMap((table) => table.rows) ?? [], lanes), [query.answer, lanes]);
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

/** Sampling gaps in the window. */
export function useGaps(lanes: readonly Lane[]): readonly SampleGap[] {
    const query = useAnswer<Answer>("table", hasRows("sample_gap") ? windowed({ what: "threads", view: "gaps", limit: GAPS_MAX }) : null);
    return useMemo(() => {
        const known = byTid(lanes);
        const table = query.answer?.tables.find((one) => one.name === "gaps");
        return (table?.rows ?? []).flatMap((row) => {
            const [begin, end] = [time(row, "ts_ns"), time(row, "ts_end_ns")];
            if (begin === null || end === null) return [];
            const lane = known.get(whole(row, "tid") ?? -1) ?? null;
            const kind = text(row, "class");
            if (!lane && kind !== "process_stopped") return [];
            return [{ lane, begin, end, kind, endedIn: text(row, "function"), group: whole(row, "group_id") }];
        });
    }, [query.answer, lanes]);
}

/** Gaps of other threads in the same group, by decreasing overlap. */
export function together(gaps: readonly SampleGap[], one: SampleGap): readonly SampleGap[] {
    const shared = (other: SampleGap) => Math.min(one.end, other.end) - Math.max(one.begin, other.begin);
    return gaps
        .filter((other) => other.group !== null && other.group === one.group && other.lane !== null && other.lane !== one.lane && shared(other) > 0)
        .sort((a, b) => shared(b) - shared(a));
}

export function linksOf(waits: readonly Wait[], gaps: readonly SampleGap[]): readonly Link[] {
    const arrows = waits.flatMap((wait) =>
        wait.holder === null || wait.holder === wait.lane
            ? []
            : [{ from: wait.lane.lane, to: wait.holder.lane, begin: wait.begin, end: wait.end, surety: wait.confidence, isArrow: true }],
    );
    const pairs = gaps.flatMap((one) =>
        together(gaps, one).flatMap((other) =>
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

/** Target of the link at a point of a lane: the holder of the lock, else a thread with a simultaneous gap. */
export function followed(waits: readonly Wait[], gaps: readonly SampleGap[], lane: Lane, at: number): { readonly lane: Lane; readonly at: number; readonly text: string } | null {
    const holds = (one: { readonly begin: number; readonly end: number }) => one.begin <= at && at < one.end;
    const wait = waits.find((one) => one.lane === lane && one.holder && one.holder !== lane && holds(one));
    if (wait?.holder) {
        const { holder } = wait;
        const holderGap = gaps.find((one) => one.lane === holder && one.begin < wait.end && one.end > wait.begin);
        const time = holderGap && !holds(holderGap) ? middle(Math.max(holderGap.begin, wait.begin), Math.min(holderGap.end, wait.end)) : at;
        return { lane: holder, at: time, text: `${lane.name} waited for ${wait.lock}, held by ${nameOf(holder)} (${wait.confidence} confidence), which was in ${wait.doing || "unnamed code"}` };
    }
    const gap = gaps.find((one) => one.lane === lane && holds(one));
    const others = gap ? together(gaps, gap) : [];
    const other = others.find((one) => one.endedIn !== gap?.endedIn) ?? others[0];
    if (!gap || !other?.lane) return null;
    const time = holds(other) ? at : middle(Math.max(other.begin, gap.begin), Math.min(other.end, gap.end));
    return { lane: other.lane, at: time, text: `sampling gap at the same time as ${nameOf(lane)}: ${nameOf(other.lane)}, in ${other.endedIn}` };
}

function middle(begin: number, end: number): number {
    return Math.floor((begin + end) / 2);
}

/** The middle of the next lock wait or sampling gap of a lane. */
export function nextEvent(waits: readonly Wait[], gaps: readonly SampleGap[], lane: Lane, at: number, isBack: boolean): number | null {
    const { begin, end } = shown.value;
    const middles = [...waits, ...gaps]
        .filter((one) => one.lane === lane && one.begin < end && one.end > begin)
        .map((one) => middle(Math.max(one.begin, begin), Math.min(one.end, end)))
        .sort((a, b) => a - b);
    return (isBack ? middles.reverse().find((one) => one < at - 1) : middles.find((one) => one > at + 1)) ?? null;
}

/** The time of the thread dump that is shown. */
export function dumpTime(): number | null {
    const { page, options } = view.value;
    return page === "threads" ? parseOffset(options["dump"] ?? "") : null;
}

/** The position of the cursor, or the middle of the window. */
export function cursorTime(): number {
    const { begin, end } = shown.value;
    const at = lastCursor.value;
    return at !== null && at >= begin && at < end ? at : middle(begin, end);
}

/** Shows the thread dump at a time, with one thread first. */
export function showDump(at: number, lane: Lane | null): void {
    choose(null);
    const options = { ...view.value.options, dump: offsetText(Math.floor(at)), ...(lane ? { at: keyOf(lane) } : {}) };
    go({ options }, true);
}

export function hideDump(): void {
    const { dump: _, ...options } = view.value.options;
    highlighted.value = new Set();
    go({ options }, true);
}

/** Key of a selected lane in the URL. */
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

/** Request parameters for the lanes left of `all`: by thread id, or by the pattern where ids do not work. */
export function threadParameters(lanes: readonly Lane[], all: number, pattern: RegExp): Parameters {
    if (lanes.length === all) return {};
    const tids = lanes.flatMap((lane) => (lane.tid === null ? [] : [String(lane.tid)]));
    if (tids.length === 0 || tids.length < lanes.length || tids.length > TIDS_MAX) return { threads: `(?i)${pattern.source}` };
    return { tid: tids.join(",") };
}
