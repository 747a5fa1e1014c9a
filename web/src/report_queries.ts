// URLs that the pages request, for reports: a report stores the responses to all of them.
import { address, type Parameters } from "./api";
import { GAPS_MAX, LANES_MAX, WAITS_MAX } from "./limits";
import { heatColumns, PAGE_LIST } from "./tabs";

/** Placeholder for each device. */
const EACH = "EACH";

/** Requests of the thread chart in addition to its lanes. */
function ofThreads(): string[] {
    return [
        address("tracks", { track: "samples", limit: LANES_MAX }),
        address("table", { what: "locks", view: "top", limit: WAITS_MAX }),
        address("table", { what: "threads", view: "gaps", limit: GAPS_MAX }),
    ];
}

/** Requests of all pages. Further `tracks` and the tiles are chosen by `whyslow export html`. */
export function reportQueries(): string[] {
    const found = [address("recordings", {}), address("explain", {}), address("series", { name: "activity", points: 600 })];
    for (const page of PAGE_LIST) {
        if (page.id === "threads") found.push(...ofThreads());
        if (page.track) found.push(address("tracks", { track: page.track, limit: LANES_MAX }));
        for (const tab of page.tabs) {
            const parameters: Parameters = { what: tab.what, ...tab.parameters };
            const isBlock = tab.what === "block";
            if (tab.chart === "heat") found.push(address("heat", { ...parameters, columns: heatColumns(isBlock), dev: isBlock ? EACH : undefined }));
            else if (tab.chart === "flame") found.push(...["offcpu", "samples", "time"].map((weight) => address("flame", { weight })));
            else found.push(address("table", { ...parameters, view: tab.verb }));
        }
    }
    found.push(address("table", { what: "block", view: "usage" }));
    return [...new Set(found)];
}
