// Where what somebody claims can be seen.
import { clock } from "./app";
import { choose } from "./selection";
import { go, type PageId } from "./state";
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
};

/** The page that shows evidence such as `block:5958`. */
export function pageOf(evidence: string): PageId {
    return PAGE_OF[evidence.split(":")[0] ?? ""] ?? "threads";
}

/** Opens it, with the window around and the row chosen. */
export function openEvidence(evidence: string, window: Span): void {
    const page = pageOf(evidence);
    const options: Record<string, string> = page === "threads" ? {} : { tab: `${page}-top` };
    go({ page, window: clamp(withMargin(window), clock.value.length), filter: {}, options });
    choose({ id: evidence });
}

/** `apache2[243]`, `java[812/831]`. */
export function actorName(actor: Actor): string {
    const { name, pid, tid } = actor;
    if (pid === null && tid === null) return name;
    const ids = pid === null || pid === tid ? `${tid}` : tid === null ? `${pid}` : `${pid}/${tid}`;
    return `${name}[${ids}]`;
}
