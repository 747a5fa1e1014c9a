// Bookmarks are the only data that a page lets the server write, to a file of the user.
import { signal } from "@preact/signals";

import type { Api } from "./api";
import { api, clock, recording } from "./app";
import { toast } from "./components/toast";
import type { Exact } from "./exact";
import { sinceBegin, type Span } from "./times";

export interface Bookmark extends Span {
    readonly note: string;
}

interface Stored {
    readonly ts_ns: Exact;
    readonly end_ns?: Exact;
    readonly note: string;
}

export const bookmarks = signal<readonly Bookmark[]>([]);

export async function loadBookmarks(from: Api, id: string): Promise<void> {
    try {
        from.forget("notes");
        const stored = (await from.json("notes", { rec: id })) as readonly Stored[];
        bookmarks.value = stored.map((one) => {
            const begin = sinceBegin(clock.value, one.ts_ns);
            return { begin, end: one.end_ns === undefined ? begin : sinceBegin(clock.value, one.end_ns), note: one.note };
        });
    } catch {
        // A report has none; everything else works without them.
    }
}

export async function saveBookmarks(all: readonly Bookmark[]): Promise<void> {
    bookmarks.value = [...all].sort((a, b) => a.begin - b.begin);
    const of = recording.value;
    const to = api.value;
    if (!of || !to || to.isReport) return;
    const absolute = (ns: number) => (clock.value.begin + BigInt(Math.round(ns))).toString();
    // Written by hand, because JSON.stringify would round numbers beyond 2^53.
    const items = bookmarks.value.map(
        (one) => `{"ts_ns":${absolute(one.begin)},"end_ns":${absolute(one.end)},"note":${JSON.stringify(one.note)}}`,
    );
    try {
        await to.put("notes", { rec: of.id }, `[${items.join(",")}]`);
    } catch (error) {
        toast(`cannot store bookmarks: ${error instanceof Error ? error.message : String(error)}`);
    }
}
