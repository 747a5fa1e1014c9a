// The current view as a command line with the same output in a terminal.
import { fleet, recording } from "./app";
import { fleetCommand } from "./fleet";
import { currentFleetQuery } from "./lake";
import { filterWords, quoted, view } from "./state";
import { offsetText, type Span } from "./times";
import { tabOf } from "./tabs";

/** The command whose output the current page shows. */
export function commandOf(): string {
    const { page, filter, window, baseline } = view.value;
    if (page === "fleet") return fleetCommand(fleet.value?.lake ?? "LAKE", currentFleetQuery() ?? { query: "hosts" });
    const name = quoted(recording.value?.name ?? "@last");
    const rest = filterWords(filter, window);
    const tab = tabOf(view.value);
    const words = page === "explain" || !tab ? ["explain"] : [tab.what, tab.verb];
    const own = Object.entries(tab?.parameters ?? {}).map(([key, value]) => `--${key} ${quoted(String(value))}`);
    const versus = baseline && page === "explain" ? [`--vs ${spanWords(baseline)}`] : [];
    const hosts = page === "explain" ? view.value.options["across"] : undefined;
    const across = hosts === undefined ? [] : [`--across ${quoted(hosts)}`];
    return ["whyslow", ...words, name, ...own, rest, ...versus, ...across].filter((word) => word !== "").join(" ");
}

function spanWords(window: Span): string {
    return `${offsetText(window.begin)}..${offsetText(window.end)}`;
}
