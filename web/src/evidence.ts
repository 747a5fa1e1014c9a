// Pages that show the evidence for a statement.
import { clock } from "./app";
import { choose } from "./selection";
import { type Change, go, type PageId } from "./state";
import { clamp, type Span, withMargin } from "./times";
import type { Actor } from "./types";

const PAGE_OF: Readonly<Record<string, PageId>> = {
    op: "io",
    block: "block",
    lock: "locks",
    state: "threads",
    stack: "threads",
    slice: "sched",
    file: "files",
    request: "requests",
    dns: "dns",
    query: "dns",
};

/** The page that shows evidence such as `block:5958`. */
export function pageOf(evidence: string): PageId {
    return PAGE_OF[evidence.split(":")[0] ?? ""] ?? "threads";
}

/** Opens that page with the row selected, zoomed to the window. */
export function openEvidence(evidence: string, window: Span): void {
    const page = pageOf(evidence);
    const options: Record<string, string> = page === "threads" ? {} : { tab: `${page}-top` };
    go({ page, window: clamp(withMargin(window), clock.value.length), filter: {}, options });
    choose({ id: evidence });
}

/** Page that shows an actor: a device next to the other devices over the whole time; other actors in the window. */
export function placeOf(actor: Actor, window: Span): Change {
    if (actor.kind === "device") return { page: "block", filter: {}, options: { tab: "block-heat", at: actor.name } };
    return { page: "threads", window, filter: {}, options: actor.tid === null ? {} : { at: String(actor.tid) } };
}

/** `apache2[243]`, `java[812/831]`. */
export function actorName(actor: Actor): string {
    const { name, pid, tid } = actor;
    if (pid === null && tid === null) return name;
    const ids = pid === null || pid === tid ? `${tid}` : tid === null ? `${pid}` : `${pid}/${tid}`;
    return `${name}[${ids}]`;
}
