// The row shown in the drawer.
import { signal } from "@preact/signals";

import { go, view } from "./state";
import type { AnswerTable, Row } from "./types";

export interface Chosen {
    /** Id as on the command line: `op:17`; null for rows without one. */
    readonly id: string | null;
    readonly row?: Row;
    readonly table?: AnswerTable;
}

/** The clicked row; of a row from the page URL only the id is known. */
export const chosen = signal<Chosen | null>(view.value.selected ? { id: view.value.selected } : null);

export function choose(one: Chosen | null): void {
    chosen.value = one;
    go({ selected: one?.id ?? null }, true);
}
