// Pages and the queries on their tabs. Reports use the same list.
import type { Parameters } from "./api";
import type { PageId, View } from "./state";

export interface Tab {
    readonly id: string;
    readonly title: string;
    readonly what: string;
    readonly verb: string;
    readonly parameters?: Parameters;
    /** Drawn as a chart, with the table as alternative. */
    readonly chart?: "heat" | "flame" | "waterfall";
}

export interface PageInfo {
    readonly id: PageId;
    readonly title: string;
    /** Key after `g`. */
    readonly key: string;
    /** The page needs rows of one of these kinds. */
    readonly kinds: readonly string[];
    readonly tabs: readonly Tab[];
    /** The track drawn above the tabs. */
    readonly track?: "states" | "cpus" | "locks" | "block";
}

const view = (what: string, verb: string, title: string, parameters?: Parameters, chart?: Tab["chart"]): Tab => ({
    id: [what, verb, parameters?.["by"]].filter(Boolean).join("-"),
    title,
    what,
    verb,
    ...(parameters ? { parameters } : {}),
    ...(chart ? { chart } : {}),
});

export const PAGE_LIST: readonly PageInfo[] = [
    { id: "explain", title: "Explain", key: "e", kinds: [], tabs: [] },
    {
        id: "requests",
        title: "Requests",
        key: "r",
        kinds: ["requests"],
        tabs: [
            view("requests", "stats", "by endpoint"),
            view("requests", "heat", "heat map", {}, "heat"),
            view("requests", "stats", "phases", { by: "phase" }),
            view("requests", "usage", "clients"),
            view("requests", "bursts", "bursts"),
            view("requests", "top", "slowest"),
            view("requests", "threads", "one request", {}, "waterfall"),
            view("requests", "outbound", "outbound requests"),
            view("requests", "hist", "histogram"),
            view("requests", "log", "list", { limit: 2000 }),
        ],
    },
    {
        id: "threads",
        title: "Threads",
        key: "t",
        kinds: ["threads", "states"],
        track: "states",
        tabs: [
            view("states", "usage", "states"),
            view("threads", "list", "threads"),
            view("states", "top", "longest"),
            view("stacks", "usage", "flame graph", {}, "flame"),
            view("stacks", "top", "stacks"),
            view("threads", "gaps", "sampling gaps"),
        ],
    },
    {
        id: "io",
        title: "I/O",
        key: "i",
        kinds: ["io"],
        tabs: [
            view("io", "usage", "usage"),
            view("io", "stats", "latency"),
            view("io", "hist", "histograms"),
            view("io", "heat", "heat map", {}, "heat"),
            view("io", "top", "slowest"),
            view("io", "log", "log", { limit: 2000 }),
        ],
    },
    {
        id: "block",
        title: "Block devices",
        key: "b",
        kinds: ["block"],
        track: "block",
        tabs: [
            view("block", "stats", "devices"),
            view("block", "heat", "heat maps", {}, "heat"),
            view("block", "hist", "histograms"),
            view("block", "outliers", "outliers"),
            view("block", "top", "slowest"),
            view("block", "log", "log", { limit: 2000 }),
        ],
    },
    {
        id: "files",
        title: "Files",
        key: "f",
        kinds: ["files"],
        tabs: [
            view("files", "top", "by pattern", { by: "pattern" }),
            view("files", "top", "by file", { by: "file" }),
            view("files", "top", "by directory", { by: "dir" }),
            view("files", "tree", "tree"),
            view("files", "open", "open at the end"),
            view("files", "log", "log", { limit: 2000 }),
        ],
    },
    {
        id: "locks",
        title: "Locks",
        key: "l",
        kinds: ["locks"],
        track: "locks",
        tabs: [
            view("locks", "usage", "waiters"),
            view("locks", "stats", "locks"),
            view("locks", "top", "longest"),
            view("locks", "hist", "histogram"),
            view("locks", "heat", "heat map", {}, "heat"),
            view("locks", "log", "log", { limit: 2000 }),
        ],
    },
    {
        id: "sched",
        title: "Scheduling",
        key: "s",
        kinds: ["sched", "cpu"],
        track: "cpus",
        tabs: [
            view("sched", "stats", "waits for a CPU"),
            view("cpu", "usage", "CPU usage"),
            view("sched", "top", "longest"),
            view("sched", "hist", "histogram"),
            view("sched", "heat", "heat map", {}, "heat"),
            view("sched", "log", "log", { limit: 2000 }),
        ],
    },
    {
        id: "dns",
        title: "DNS",
        key: "n",
        kinds: ["dns", "nameservers"],
        tabs: [
            view("dns", "stats", "names"),
            view("dns", "usage", "waiters"),
            view("dns", "heat", "heat map", {}, "heat"),
            view("dns", "hist", "histogram"),
            view("dns", "top", "longest"),
            view("dns", "log", "log", { limit: 2000 }),
            view("nameservers", "stats", "servers"),
            view("nameservers", "top", "queries"),
        ],
    },
    { id: "sql", title: "SQL", key: "q", kinds: [], tabs: [] },
    // Its tabs depend on the server: see fleet.ts.
    { id: "fleet", title: "Fleet", key: "h", kinds: [], tabs: [] },
];

export function pageInfo(id: PageId): PageInfo {
    // A test checks that every id is in the list.
    return PAGE_LIST.find((page) => page.id === id) as PageInfo;
}

/** The tab named in the URL, else the first. */
export function tabOf(of: View): Tab | null {
    const { tabs } = pageInfo(of.page);
    return tabs.find((tab) => tab.id === of.options["tab"]) ?? tabs[0] ?? null;
}

/** Columns of a heat map: fewer for one of several maps side by side. */
export function heatColumns(isOneOfSeveral: boolean): number {
    return isOneOfSeveral ? 100 : 200;
}
