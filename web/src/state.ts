// The current view: one object, which is also the URL of the page.
import { batch, computed, signal } from "@preact/signals";

import { offsetText, parseSpan, type Span, spanText } from "./times";

export const PAGES = ["explain", "requests", "threads", "io", "block", "files", "locks", "sched", "dns", "sql", "fleet"] as const;
export type PageId = (typeof PAGES)[number];

/** Filters, with names and values as on the command line. */
export type Filter = Readonly<Record<string, string>>;

export const FILTER_KEYS = [
    "pid", "tid", "comm", "cgroup", "dev", "file", "op", "name", "cpu", "size", "min-size", "max-size", "min", "max",
    "errors", "no-tracer", "waits",
] as const;

/** Filters in words, for labels. */
export const FILTER_TITLES: Readonly<Record<(typeof FILTER_KEYS)[number], string>> = {
    pid: "process id",
    tid: "thread id",
    comm: "thread name",
    cgroup: "cgroup",
    dev: "device",
    file: "file",
    op: "operation class",
    name: "system call",
    cpu: "CPU",
    size: "size",
    "min-size": "size at least",
    "max-size": "size at most",
    min: "duration at least",
    max: "duration at most",
    errors: "only errors",
    "no-tracer": "without the recorder",
    waits: "with waits for work",
};

/** A filter in words; keys that are not filters stay as they are. */
export function filterTitle(key: string): string {
    return (FILTER_TITLES as Readonly<Record<string, string>>)[key] ?? key;
}

export interface View {
    readonly recording: string | null;
    readonly page: PageId;
    readonly window: Span | null;
    readonly filter: Filter;
    /** Window to compare with. */
    readonly baseline: Span | null;
    /** Selected row: an id as on the command line (`op:17`), or `finding:0`. */
    readonly selected: string | null;
    /** Options of a page: tab, grouping, … */
    readonly options: Readonly<Record<string, string>>;
}

const RESERVED = new Set<string>(["rec", "page", "w", "vs", "sel", ...FILTER_KEYS]);

/** Whether a URL key has the same meaning on every page. */
export function isReserved(key: string): boolean {
    return RESERVED.has(key);
}

export function readView(query: string): View {
    const words = new URLSearchParams(query);
    const filter: Record<string, string> = {};
    for (const key of FILTER_KEYS) {
        const value = words.get(key);
        if (value !== null) filter[key] = value;
    }
    const options: Record<string, string> = {};
    for (const [key, value] of words) if (!RESERVED.has(key)) options[key] = value;
    const page = PAGES.find((known) => known === words.get("page")) ?? "explain";
    return {
        recording: words.get("rec"),
        page,
        window: parseSpan(words.get("w") ?? ""),
        filter,
        baseline: parseSpan(words.get("vs") ?? ""),
        selected: words.get("sel"),
        options,
    };
}

export function writeView(view: View): string {
    const words = new URLSearchParams();
    if (view.recording) words.set("rec", view.recording);
    if (view.page !== "explain") words.set("page", view.page);
    if (view.window) words.set("w", spanText(view.window));
    if (view.baseline) words.set("vs", spanText(view.baseline));
    for (const [key, value] of Object.entries(view.filter)) words.set(key, value);
    if (view.selected) words.set("sel", view.selected);
    for (const [key, value] of Object.entries(view.options)) words.set(key, value);
    // Easier to read and to paste; valid unescaped in a query string.
    const text = words.toString().replace(/%3A/g, ":").replace(/%2B/g, "%2B");
    return text ? `?${text}` : "";
}

const isPage = typeof location !== "undefined";
/** A page opened from a file cannot change its path: its state is in the fragment. */
const isFile = isPage && location.protocol === "file:";

function currentQuery(): string {
    if (!isPage) return "";
    return isFile ? location.hash.slice(1) : location.search;
}

export const view = signal<View>(readView(currentQuery()));
/** True while dragging, when the view changes many times a second. */
export const dragging = signal(false);

export type Change = Partial<View>;

/** Shows another view. With `replace`, as while dragging, no history entry is added. */
export function go(change: Change, replace = false): void {
    batch(() => {
        const next = { ...view.value, ...change };
        if (change.page && change.page !== view.value.page && !change.options) {
            view.value = { ...next, options: {} };
        } else {
            view.value = next;
        }
    });
    if (!isPage) return;
    const text = writeView(view.value);
    if (text === currentQuery()) return;
    const place = isFile ? `#${text}` : `${location.pathname}${text}`;
    if (replace) history.replaceState(null, "", place);
    else history.pushState(null, "", place);
}

export function setOption(key: string, value: string | null, replace = false): void {
    const options = { ...view.value.options };
    if (value === null) delete options[key];
    else options[key] = value;
    go({ options }, replace);
}

export function setFilter(key: string, value: string | null): void {
    const filter: Record<string, string> = { ...view.value.filter };
    if (value === null) delete filter[key];
    else filter[key] = value;
    go({ filter });
}

if (isPage) {
    addEventListener("popstate", () => {
        view.value = readView(currentQuery());
    });
}

/** Window and filter as request parameters. */
export const common = computed<Readonly<Record<string, string>>>(() => ({
    ...(view.value.window ? { w: spanText(view.value.window) } : {}),
    ...view.value.filter,
}));

/** Window and filter as command-line arguments. */
export function filterWords(filter: Filter, window: Span | null): string {
    const words = Object.entries(filter).map(([key, value]) => (value === "true" ? `--${key}` : `--${key} ${quoted(value)}`));
    if (window) words.push(`-w ${offsetText(window.begin)}..${offsetText(window.end)}`);
    return words.join(" ");
}

/** Quoted as one word for a shell. */
export function quoted(word: string): string {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
