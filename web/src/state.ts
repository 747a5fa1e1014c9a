// What is looked at: one object, which is also the address of the page.
import { batch, computed, signal } from "@preact/signals";

import { offsetText, parseSpan, type Span, spanText } from "./times";

export const PAGES = ["explain", "requests", "threads", "io", "block", "files", "locks", "sched", "dns", "sql", "fleet"] as const;
export type PageId = (typeof PAGES)[number];

/** Filters by the names the command line has for them; values as typed there. */
export type Filter = Readonly<Record<string, string>>;

export const FILTER_KEYS = [
    "pid", "tid", "comm", "cgroup", "dev", "file", "op", "name", "cpu", "size", "min-size", "max-size", "min", "max",
    "errors", "no-tracer",
] as const;

export interface View {
    readonly recording: string | null;
    readonly page: PageId;
    readonly window: Span | null;
    readonly filter: Filter;
    /** What the window is compared with. */
    readonly baseline: Span | null;
    /** What the drawer tells about: an id as the command line takes it (`op:17`), or `story:0`. */
    readonly selected: string | null;
    /** Choices of a page: its tab, how it is grouped, … */
    readonly options: Readonly<Record<string, string>>;
}

const RESERVED = new Set<string>(["rec", "page", "w", "vs", "sel", ...FILTER_KEYS]);

/** Whether a key of an address has its meaning on every page. */
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
    // Easier to read and to paste; both are allowed there.
    const text = words.toString().replace(/%3A/g, ":").replace(/%2B/g, "%2B");
    return text ? `?${text}` : "";
}

const isPage = typeof location !== "undefined";
/** A page from a file has no addresses to go to; its choices stand behind the `#`. */
const isFile = isPage && location.protocol === "file:";

function currentQuery(): string {
    if (!isPage) return "";
    return isFile ? location.hash.slice(1) : location.search;
}

export const view = signal<View>(readView(currentQuery()));
/** While something is dragged, changes come many times a second. */
export const dragging = signal(false);

export type Change = Partial<View>;

/** Goes to another view. A committed change is a step of Back; what happens while dragging is none. */
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

/** Window and filter as parameters of a question. */
export const common = computed<Readonly<Record<string, string>>>(() => ({
    ...(view.value.window ? { w: spanText(view.value.window) } : {}),
    ...view.value.filter,
}));

/** As words of the command line. */
export function filterWords(filter: Filter, window: Span | null): string {
    const words = Object.entries(filter).map(([key, value]) => (value === "true" ? `--${key}` : `--${key} ${quoted(value)}`));
    if (window) words.push(`-w ${offsetText(window.begin)}..${offsetText(window.end)}`);
    return words.join(" ");
}

/** As a shell takes it for one word. */
export function quoted(word: string): string {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
