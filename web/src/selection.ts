// What the drawer tells about.
import { signal } from "@preact/signals";

import { go, view } from "./state";
import type { AnswerTable, Row } from "./types";

export interface Chosen {
    /** As the command line takes it: `op:17`; null for rows that have none. */
    readonly id: string | null;
    readonly row?: Row;
    readonly table?: AnswerTable;
}

/** A row just clicked, with what is known of it; from an address only its id is known. */
export const chosen = signal<Chosen | null>(view.value.selected ? { id: view.value.selected } : null);

export function choose(one: Chosen | null): void {
    chosen.value = one;
    go({ selected: one?.id ?? null }, true);
}
