// Responses of the server to `explain`, as documented in docs/api.md.
import type { Exact } from "./exact";

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
    readonly dur_ns: number;
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
