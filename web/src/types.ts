// Responses of the server, as documented in docs/api.md.
import type { Exact } from "./exact";

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

export interface Actor {
    readonly kind: string;
    readonly name: string;
    readonly pid: number | null;
    readonly tid: number | null;
    /** Its host, if that is the host of another recording. */
    readonly host?: string;
}

/** Calls of one kind that a request consisted of. */
export interface Did {
    readonly call: string;
    readonly path: string | null;
    readonly count: number;
    readonly dur_ns: Ns;
    readonly share: number;
    readonly bytes: number | null;
    readonly id: string;
}

/** A request to another host. */
export interface Crossing {
    readonly from_host?: string;
    readonly host: string | null;
    readonly recording: string | null;
    readonly waited_ns: number;
    readonly served_ns: number;
    readonly between_ns: number;
    readonly contradicting: number;
    readonly summary: string;
}

export interface Activity {
    readonly call: string;
    readonly path: string | null;
    readonly begin_ns: Exact;
    readonly end_ns: Exact | null;
    readonly id: string | null;
}

export interface Thing {
    readonly kind: string;
    readonly name: string;
}

export type Grade = "A" | "B" | "C" | "D";

export interface Part {
    readonly mechanism: string;
    readonly root: string;
    readonly culprit: Actor;
    readonly activity: Activity | null;
    readonly object: Thing | null;
    readonly client?: Actor;
    readonly dur_ns: number;
    readonly share: number;
    readonly grade: Grade;
    readonly pieces: number;
    readonly evidence: readonly string[];
    readonly shown_by: string | null;
}

export interface Hop {
    readonly actor: Actor;
    readonly what: string;
    readonly mechanism: string;
    readonly activity: Activity | null;
    readonly object: Thing | null;
    readonly stack: readonly string[];
    readonly begin_ns: Exact;
    readonly end_ns: Exact;
    readonly grade: Grade;
    readonly evidence: string;
    readonly shown_by: string | null;
}

/** Operations that were slow because of the culprit of a finding. */
export interface Victim {
    readonly actor: Actor;
    /** `openat()`. */
    readonly what: string;
    readonly count: number;
    /** Of all such operations; null if that is not known. */
    readonly of: number | null;
    readonly dur_ns_max: number;
    readonly usual_ns: number | null;
    readonly id: string | null;
}

/** A bar of the drawing of a finding. */
export interface TimelineRow {
    /** `between`: it waited for the culprit, and a victim for it. */
    readonly role: "culprit" | "between" | "victim";
    readonly label: string;
    /** `syncfs(/srv/backup)`; may be empty. */
    readonly what: string;
    readonly begin_ns: Exact;
    /** The end of the recording if it was still in progress. */
    readonly end_ns: Exact;
    /** Ends that lie outside of the recording. */
    readonly cut: "begin" | "end" | "both" | null;
    readonly id: string | null;
}

export interface Advice {
    readonly kind: "now" | "fix" | "next";
    readonly text: string;
    readonly command: string | null;
}

/** The verdict on a resource, independent of the findings. */
export interface Resource {
    readonly topic: "cpu" | "disk" | "memory" | "network";
    /** `none_happened`: recorded, and nothing of the kind happened. */
    readonly state: "fine" | "high" | "none_happened" | "not_recorded";
    /** `CPU 15 %`. */
    readonly summary: string;
    /** Option of `whyslow record`, if it was not recorded. */
    readonly record_with: string | null;
}

export interface Finding {
    /** The cause, culprit first. */
    readonly why: string;
    /** The slow operations. */
    readonly who: string;
    /** The same as data, the explained operation first. */
    readonly victims: readonly Victim[];
    /** The confidence, and what it is based on. */
    readonly sure: string;
    /** At most four rows for one axis, the culprit first. */
    readonly timeline: readonly TimelineRow[];
    /** When the activity of the culprit ended; null if it was still in progress. */
    readonly ended_ns: Exact | null;
    readonly advice: readonly Advice[];
    readonly target: {
        readonly kind: string;
        readonly id: string | null;
        readonly what: string;
        readonly actor: Actor;
        readonly begin_ns: Exact;
        readonly end_ns: Exact;
        readonly cut: string | null;
    };
    readonly group: { readonly operation: string; readonly count: number; readonly dur_ns_total: number } | null;
    readonly baseline: { readonly median_ns: number; readonly count: number; readonly of: string; readonly result?: string } | null;
    readonly verdict: string;
    readonly confidence: "high" | "medium" | "low" | "none";
    readonly culprit: number | null;
    readonly parts: readonly Part[];
    readonly chain: readonly Hop[];
    readonly unexplained_ns: number;
    readonly saved_at_most_ns: number;
    readonly alternatives: readonly { readonly part: number; readonly summary: string }[];
    readonly also: readonly { readonly what: string; readonly id: string | null; readonly actor: Actor; readonly dur_ns: number; readonly count: number }[];
    readonly neighbours: readonly {
        readonly actor: Actor;
        readonly what: string;
        readonly bytes: number | null;
        readonly cpu_ns: number | null;
    }[];
    readonly missing: readonly { readonly events: string; readonly decides: string; readonly record_with: string }[];
    readonly suggestions: readonly string[];
    readonly caveats: readonly string[];
    readonly reproduce: string | null;
    readonly did?: readonly Did[];
    readonly across?: readonly Crossing[];
}

export interface Observation {
    readonly kind: string;
    readonly culprit: Actor;
    readonly object: Thing | null;
    readonly begin_ns: Exact;
    readonly end_ns: Exact;
    readonly summary: string;
    readonly shown_by: string | null;
    readonly suggestions: readonly string[];
}

export interface Explanation {
    readonly judged?: "findings" | "nothing_slow" | "cannot_tell";
    readonly reasons?: readonly { readonly id: string; readonly summary: string; readonly next: string }[];
    readonly recording: string;
    readonly begin_ns: Exact;
    readonly end_ns: Exact;
    /** Null if losses of an unknown number of events were reported. */
    readonly lost_events: number | null;
    /** Share of the window in which events were lost, on average over the CPUs. */
    readonly lost_share: number;
    readonly fine: readonly Resource[];
    readonly findings: readonly Finding[];
    readonly observations: readonly Observation[];
    readonly patterns: readonly { readonly class: string; readonly summary: string; readonly hints: readonly string[] }[];
    readonly tracer_share: number | null;
    readonly caveats: readonly string[];
    readonly cli?: string;
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
