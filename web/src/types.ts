// Responses of the server, as documented in docs/api.md.
import type { Exact } from "./exact";

export type * from "./explanation_types";

export type Measure =
    | "text"
    | "path"
    | "count"
    | "time_ns"
    | "duration_ns"
    | "bytes"
    | "ratio"
    | "per_second"
    | "bytes_per_second"
    | "number"
    | "id";

export type Cell = string | number | boolean | null | readonly Cell[];

export interface Column {
    readonly name: string;
    readonly title: string;
    readonly measure: Measure;
}

export type Row = Readonly<Record<string, Cell>>;

export interface AnswerTable {
    readonly name: string;
    readonly title: string;
    readonly form: string;
    readonly columns: readonly Column[];
    readonly rows: readonly Row[];
    readonly facts: Readonly<Record<string, Cell>>;
}

export interface Loss {
    readonly kind: string;
    readonly begin_ns: Exact;
    readonly end_ns: Exact | null;
    readonly count: number | null;
    readonly cpu: number | null;
}

/** `unknown`: the source does not state whether such events were recorded; shown like `not_recorded`. */
export type TopicState = "recorded" | "none_happened" | "not_recorded" | "unknown";

export interface Answer {
    readonly query: string;
    /** State of the kind in the window; absent or null if the answer is not of one kind. */
    readonly state?: TopicState | null;
    /** Why there are no rows. */
    readonly reason?: string | null;
    /** What would record them: `--what +locks`, or an instruction. */
    readonly record_with?: string | null;
    readonly recording: string;
    readonly window: { readonly begin_ns: Exact; readonly end_ns: Exact } | null;
    readonly tables: readonly AnswerTable[];
    readonly losses: readonly Loss[];
    readonly caveats: readonly string[];
    /** Rows that match but are left out by default; a caveat mentions them, too. */
    readonly left_out?: { readonly what: string; readonly count: number; readonly total_ns: number; readonly option: string };
    readonly next: string | null;
    readonly cli?: string;
}

export interface Kind {
    readonly kind: string;
    readonly verbs: readonly string[];
    /** Whether there are rows. */
    readonly recorded: boolean;
    readonly state: TopicState;
    /** Events in the recording; null if `not_recorded` or `unknown`. */
    readonly count: number | null;
    /** Why there are none; null if `recorded`. */
    readonly reason: string | null;
    /** What would record them: `--what +locks`, or an instruction. */
    readonly record_with: string | null;
}

export interface RecordingInfo {
    readonly id: string;
    readonly name: string;
    readonly host: string | null;
    readonly zone: string | null;
    readonly begin_ns: Exact;
    readonly end_ns: Exact;
    readonly digest?: string;
    readonly live: boolean;
    readonly rows: Readonly<Record<string, number>>;
    readonly kinds: readonly Kind[];
    readonly lost: readonly Loss[];
    readonly tiles: { readonly state: "building" | "ready" | "failed"; readonly done?: number; readonly error?: string };
    readonly sql: { readonly available: boolean; readonly hint?: string };
}

export interface Recordings {
    readonly version: string;
    readonly recordings: readonly RecordingInfo[];
}

export interface Hit {
    readonly kind: string;
    readonly text: string;
    readonly detail: string | null;
    readonly count: number | null;
    readonly begin_ns: Exact | null;
    readonly end_ns: Exact | null;
    readonly filter: Readonly<Record<string, Cell>> | null;
}
