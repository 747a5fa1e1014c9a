// Lake queries on the Fleet page, and the selected row of their results.
import { signal } from "@preact/signals";

import type { Parameters } from "./api";
import { api, fleet } from "./app";
import { type QueryState, useQuery } from "./query";
import { fleetTab, type Lead, parametersOf, queryOf } from "./fleet";
import { go, view } from "./state";
import type { AnswerTable, Row } from "./types";

export interface FleetChosen {
    readonly row: Row;
    readonly table: AnswerTable;
    /** Null for rows without a recording. */
    readonly lead: Lead | null;
}

/** The row or cell that the drawer shows. */
export const fleetChosen = signal<FleetChosen | null>(null);

/** Counts refreshes: a lake may grow while the page is open. */
const refreshes = signal(0);

export function refresh(): void {
    api.value?.forget("fleet");
    refreshes.value += 1;
}

/** Queries the lake; `null` sends nothing. */
export function useFleet<T>(parameters: Parameters | null): QueryState<T> {
    return useQuery<T>("fleet", parameters, String(refreshes.value));
}

/** Cell length of the heat map: chosen by the user, else as short as fits. */
export const chosenBin = signal<string | null>(null);

/** Request parameters of the query shown on the page. */
export function currentFleetQuery(): Parameters | null {
    const info = fleet.value;
    const tab = info && fleetTab(info, view.value.options);
    const query = info && tab && queryOf(info, tab.id);
    if (!query) return null;
    const bin = query.name === "heat" && chosenBin.value ? { bin: chosenBin.value } : {};
    return { ...bin, ...parametersOf(query, view.value.options) };
}

/** Changes options of the page; null removes one. */
export function choices(changes: Readonly<Record<string, string | null>>): void {
    const options: Record<string, string> = { ...view.value.options };
    for (const [key, value] of Object.entries(changes)) {
        if (value === null || value === "") delete options[key];
        else options[key] = value;
    }
    go({ page: "fleet", options });
}
