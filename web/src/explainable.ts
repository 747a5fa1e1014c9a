// Which rows `explain` accepts, and how they are passed to it.
import type { Parameters } from "./api";
import type { Chosen } from "./selection";
import { quoted } from "./state";
import { sinceBegin, type Clock, type Span, spanText } from "./times";
import type { Row } from "./types";

/** Parameters of `explain`, as in the API. */
export interface ExplainRequest extends Parameters {
    /** Id of a row, or a window. */
    readonly w?: string;
    readonly request?: string;
    readonly tid?: string;
    readonly dev?: string;
}

/** Prefixes of ids that `explain -w` accepts. */
const BY_ID: ReadonlySet<string> = new Set(["op", "block", "state", "slice", "lock", "gap", "dns", "query", "function", "reclaim", "phase"]);

/**
 * The request that explains a row; null if it cannot be explained. Rows of a thread without an id of their own are
 * explained by the time of the thread in the row, or in the `shown` window if the row has no time.
 */
export function explainRequest(one: Chosen, clock: Clock, shown: Span): ExplainRequest | null {
    const [prefix = "", number = ""] = (one.id ?? "").split(":");
    if (prefix === "request" && number) return { request: number };
    if (prefix === "request_thread") return requestOf(one.row);
    if (one.id !== null && BY_ID.has(prefix) && number) return { w: one.id };
    const { row } = one;
    if (!row) return null;
    const window = "ts_ns" in row ? rowSpan(clock, row) : shown;
    if (!window) return null;
    const { tid, dev } = row;
    if (typeof tid === "number") return { w: spanText(window), tid: String(tid) };
    // Devices: a row of one device, not of an operation on it.
    if (typeof dev === "string" && dev && one.id === null) return { w: spanText(window), dev };
    return null;
}

function requestOf(row: Row | undefined): ExplainRequest | null {
    const id = row?.["request"];
    return typeof id === "string" && id.startsWith("request:") ? { request: id.slice("request:".length) } : null;
}

/** The command that prints the same explanation. */
export function explainCommand(recording: string, of: ExplainRequest): string {
    const words = [
        of.request === undefined ? "" : `--request ${of.request}`,
        of.w === undefined ? "" : `-w ${quoted(of.w)}`,
        of.tid === undefined ? "" : `-t ${of.tid}`,
        of.dev === undefined ? "" : `-d ${quoted(of.dev)}`,
    ];
    return ["whyslow explain", quoted(recording), ...words].filter((word) => word !== "").join(" ");
}

/** Start and end of a row; null for a point in time. */
export function rowSpan(clock: Clock, row: Row): Span | null {
    const { ts_ns: ts, ts_end_ns: end, dur_ns: dur } = row;
    if (typeof ts !== "string" && typeof ts !== "number") return null;
    const begin = sinceBegin(clock, ts);
    if (typeof end === "string" || typeof end === "number") return { begin, end: sinceBegin(clock, end) };
    if (typeof dur === "number") return { begin, end: begin + dur };
    // In progress at the end of the recording, unless rows of this table have no duration.
    return "dur_ns" in row || "ts_end_ns" in row ? { begin, end: clock.length } : null;
}
