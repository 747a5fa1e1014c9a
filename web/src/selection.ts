// The row shown in the drawer. Its id is part of the page URL, so that Back, reload and links keep it.
import { batch, computed, signal } from "@preact/signals";

import { clock, shown } from "./app";
import { explainRequest, type ExplainRequest } from "./explainable";
import { go, setOption, view } from "./state";
import type { AnswerTable, Row } from "./types";

export interface Chosen {
    /** Id as on the command line: `op:17`; null for rows without one. */
    readonly id: string | null;
    readonly row?: Row;
    readonly table?: AnswerTable;
}

/** The last clicked row, with its cells. */
const clicked = signal<Chosen | null>(null);

/** The selected row; of a row from the page URL only the id is known. */
export const chosen = computed<Chosen | null>(() => selectedRow(view.value.selected, clicked.value));

/** The row with the id of the URL: the clicked one, if it is the same. */
export function selectedRow(id: string | null, last: Chosen | null): Chosen | null {
    if (last && last.id === id) return last;
    return id === null ? null : { id };
}

export function choose(one: Chosen | null): void {
    batch(() => {
        clicked.value = one;
        go({ selected: one?.id ?? null }, true);
    });
}

/** Option of the page URL: the tab of the drawer. */
export const DETAIL = "detail";

/** The selected row as a request to `explain`; null if it cannot be explained. */
export function requestOfChosen(): ExplainRequest | null {
    return chosen.value && explainRequest(chosen.value, clock.value, shown.value);
}

/** Shows the explanation of the selected row. */
export function explainChosen(): void {
    setOption(DETAIL, "explain");
}
