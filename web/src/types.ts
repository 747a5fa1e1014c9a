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

export interface Answer {
    readonly query: string;
    readonly recording: string;
    readonly window: { readonly begin_ns: Exact; readonly end_ns: Exact } | null;
    readonly tables: readonly AnswerTable[];
    readonly losses: readonly Loss[];
    readonly caveats: readonly string[];
    readonly next: string | null;
    readonly cli?: string;
}

export interface Kind {
    readonly kind: string;
    readonly verbs: readonly string[];
    readonly recorded: boolean;
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

export interface Finding {
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
    readonly baseline: { readonly median_ns: number; readonly count: number; readonly of: string } | null;
    readonly verdict: string;
    readonly confidence: "high" | "medium" | "low";
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
    readonly recording: string;
    readonly begin_ns: Exact;
    readonly end_ns: Exact;
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
