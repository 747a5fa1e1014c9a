// Marks on timelines: findings and bookmarks.
import { computed, signal } from "@preact/signals";

import { clock } from "./app";
import { bookmarks } from "./bookmarks";
import type { Mark } from "./charts/index";
import { sinceBegin } from "./times";
import type { Explanation } from "./types";

/** Findings of the whole recording. */
export const explanation = signal<Explanation | null>(null);

export const marks = computed<readonly Mark[]>(() => [
    ...(explanation.value?.findings ?? []).map((finding) => ({
        at: sinceBegin(clock.value, finding.target.begin_ns),
        text: finding.verdict,
        kind: "finding" as const,
    })),
    ...bookmarks.value.map((one) => ({ at: one.begin, text: one.note, kind: "bookmark" as const })),
]);
