// Whether a recording has events of a kind: recorded (a number), none happened, or not recorded.
import type { Kind, RecordingInfo, TopicState } from "./types";

/** State of the kinds that a page needs. */
export interface PageState {
    readonly state: TopicState;
    /** Events of all kinds of the page; null if none of them was recorded. */
    readonly count: number | null;
    /** Why there are no events. */
    readonly reason: string | null;
    /** What records them: an option of `whyslow record`, or an instruction. */
    readonly recordWith: string | null;
}

/** Best first: a page is as usable as its best kind. */
const ORDER: readonly TopicState[] = ["recorded", "none_happened", "unknown", "not_recorded"];

/** State of a page that needs rows of one of these kinds; pages without kinds are always available. */
export function pageState(kinds: readonly string[], of: RecordingInfo | null): PageState {
    const known = kinds.flatMap((name) => of?.kinds.find((kind) => kind.kind === name) ?? []);
    const best = [...known].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))[0];
    if (!best) return { state: "recorded", count: null, reason: null, recordWith: null };
    const counts = known.flatMap((kind) => kind.count ?? []);
    return {
        state: best.state,
        count: counts.length > 0 ? Math.max(...counts) : null,
        reason: best.reason,
        recordWith: best.record_with,
    };
}

/** Whether events of a kind would be in the recording. */
export function isRecorded(state: TopicState): boolean {
    return state === "recorded" || state === "none_happened";
}

/** State of one kind. */
export function kindState(name: string, of: RecordingInfo | null): Kind | null {
    return of?.kinds.find((kind) => kind.kind === name) ?? null;
}

/** `not recorded`, `cannot tell`, `none happened`: for labels. */
export function stateTitle(state: TopicState): string {
    switch (state) {
        case "recorded":
            return "recorded";
        case "none_happened":
            return "none happened";
        case "not_recorded":
            return "not recorded";
        case "unknown":
            return "cannot tell";
    }
}

/** The command that records the missing events; null if `recordWith` has none. */
export function recordCommand(recordWith: string | null): string | null {
    if (recordWith?.startsWith("--")) return `whyslow record ${recordWith}`;
    return /`(whyslow [^`]+)`/.exec(recordWith ?? "")?.[1] ?? null;
}

/** Several options of `record` as one: `--what +locks,+net`; other options one after another. Null without any. */
export function joinedOptions(options: readonly string[]): string | null {
    const flag = "--what ";
    const topics = options.flatMap((one) => (one.startsWith(flag) ? one.slice(flag.length).split(",") : []));
    const rest = options.filter((one) => one.startsWith("--") && !one.startsWith(flag));
    const what = topics.length > 0 ? [`${flag}${[...new Set(topics)].join(",")}`] : [];
    return [...what, ...new Set(rest)].join(" ") || null;
}

/** The reason as a sentence. */
export function reasonText(state: TopicState, reason: string | null): string {
    const text = reason ?? stateTitle(state);
    const first = Array.from(text)[0] ?? "";
    return `${first.toUpperCase()}${text.slice(first.length)}${/[.!?…]$/.test(text) ? "" : "."}`;
}
