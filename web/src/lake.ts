// Questions of the lake on the page Fleet, and what is chosen of their answers.
import { signal } from "@preact/signals";

import type { Parameters } from "./api";
import { api, fleet } from "./app";
import { type Asked, useAsked } from "./ask";
import { fleetTab, type Lead, parametersOf, questionOf } from "./fleet";
import { go, view } from "./state";
import type { AnswerTable, Row } from "./types";

export interface FleetChosen {
    readonly row: Row;
    readonly table: AnswerTable;
    /** Where it leads; null for rows of no recording. */
    readonly lead: Lead | null;
}

/** The row or cell that is told about. */
export const fleetChosen = signal<FleetChosen | null>(null);

/** Counts how often everything was asked anew: a lake grows while the page is open. */
const asked = signal(0);

export function askAgain(): void {
    api.value?.forget("fleet");
    asked.value += 1;
}

/** Of the lake; `null` asks nothing. */
export function useFleet<T>(parameters: Parameters | null): Asked<T> {
    return useAsked<T>("fleet", parameters, String(asked.value));
}

/** Length of the cells of the map, which are as long as fits unless somebody says it. */
export const chosenBin = signal<string | null>(null);

/** The question that the page shows, as the server takes it. */
export function currentQuestion(): Parameters | null {
    const info = fleet.value;
    const tab = info && fleetTab(info, view.value.options);
    const question = info && tab && questionOf(info, tab.id);
    if (!question) return null;
    const bin = question.name === "heat" && chosenBin.value ? { bin: chosenBin.value } : {};
    return { ...bin, ...parametersOf(question, view.value.options) };
}

/** Changes some choices of the page; null takes one away. */
export function choices(changes: Readonly<Record<string, string | null>>): void {
    const options: Record<string, string> = { ...view.value.options };
    for (const [key, value] of Object.entries(changes)) {
        if (value === null || value === "") delete options[key];
        else options[key] = value;
    }
    go({ page: "fleet", options });
}
