// Everything that keys do. Single letters act only where they do not hinder typing, and can be switched off.
import { signal } from "@preact/signals";

import { clock, hasLake, shown } from "./app";
import { copy } from "./clipboard";
import { commandOf } from "./commands";
import { closeDialog, dialog, openDialog } from "./components/dialogs";
import { fleetChosen } from "./lake";
import { savePicture } from "./picture";
import { choose, chosen } from "./selection";
import { go, view } from "./state";
import { PAGE_LIST } from "./tabs";
import { theme } from "./theme";
import { cursorMoment, hasRows, hideMoment, shownMoment, showMoment } from "./threads";
import { clamp, length, zoomed } from "./times";

export interface Action {
    readonly name: string;
    /** As shown: `g t`, `Ctrl+K`. */
    readonly keys: string;
    readonly run: () => void;
    /** Whether it can be done now; without it always. */
    readonly isOffered?: () => boolean;
}

/** What can be done on this page, of this server. */
export function offered(): readonly Action[] {
    return ACTIONS.filter((action) => action.isOffered?.() ?? true);
}

/** A fleet has no window of a recording that could be moved. */
const ofRecordings = () => view.value.page !== "fleet";

/** Whether single letters act; some people's tools send them by accident. */
export const lettersAct = signal(true);

const ZOOM = 0.6;
const PAN = 0.25;

function moveWindow(by: number): void {
    const size = length(shown.value);
    const window = clamp({ begin: shown.value.begin + by * size, end: shown.value.end + by * size }, clock.value.length);
    go({ window });
}

export function zoomWindow(factor: number, at?: number): void {
    const window = clamp(zoomed(shown.value, factor, at), clock.value.length);
    const isAll = window.begin <= 0 && window.end >= clock.value.length;
    go({ window: isAll ? null : window });
}

/** Charts of threads with samples have `d` for a dump, so the page has it, too. */
function laterOrStacks(): void {
    const hasStacks = view.value.page === "threads" && hasRows("stack_sample");
    if (hasStacks) showMoment(cursorMoment(), null);
    else moveWindow(PAN);
}

function copyTable(): void {
    document.querySelector<HTMLButtonElement>("main .table .tools button")?.click();
}

export const ACTIONS: readonly Action[] = [
    ...PAGE_LIST.map((page) => ({
        name: `go to ${page.title}`,
        keys: `g ${page.key}`,
        run: () => go({ page: page.id }),
        isOffered: () => page.id !== "fleet" || hasLake.value,
    })),
    { name: "search threads, files, devices, functions", keys: "/", run: () => openDialog("search") },
    { name: "all actions", keys: "Ctrl+K", run: () => openDialog("palette") },
    { name: "zoom in", keys: "w", run: () => zoomWindow(ZOOM), isOffered: ofRecordings },
    { name: "zoom out", keys: "s", run: () => zoomWindow(1 / ZOOM), isOffered: ofRecordings },
    { name: "earlier", keys: "a", run: () => moveWindow(-PAN), isOffered: ofRecordings },
    { name: "later", keys: "D", run: () => moveWindow(PAN), isOffered: ofRecordings },
    { name: "later; of threads with samples all stacks at the cursor", keys: "d", run: laterOrStacks, isOffered: ofRecordings },
    { name: "the whole recording", keys: "0", run: () => go({ window: null }), isOffered: ofRecordings },
    { name: "back", keys: "Backspace", run: () => history.back() },
    { name: "keep the window as baseline", keys: "v", run: () => go({ baseline: view.value.baseline ? null : shown.value }), isOffered: ofRecordings },
    { name: "bookmarks", keys: "m", run: () => openDialog("bookmarks"), isOffered: ofRecordings },
    { name: "copy the table", keys: "y", run: copyTable },
    { name: "copy this view as a command line", keys: "Y", run: () => void copy(commandOf(), "command") },
    { name: "save this page as a picture (PNG)", keys: "P", run: () => void savePicture() },
    { name: "copy the link", keys: "l", run: () => void copy(location.href, "link") },
    { name: "light or dark", keys: "", run: theme.toggle },
    { name: "switch single-letter keys off or on", keys: "", run: () => (lettersAct.value = !lettersAct.value) },
    { name: "help", keys: "?", run: () => openDialog("help") },
];

const BY_KEY = new Map(ACTIONS.filter((action) => action.keys).map((action) => [action.keys, action]));

/** Keys after `g` count for so long, ms. */
const CHORD_MS = 1200;
let chord = Number.NEGATIVE_INFINITY;

/** Handles keys for the whole page; charts take what is theirs before. */
export function onKey(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openDialog("palette");
        return;
    }
    if (event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") {
        if (dialog.value) closeDialog();
        else if (!ofRecordings()) fleetChosen.value = null;
        else if (chosen.value) choose(null);
        else if (shownMoment() !== null) hideMoment();
        return;
    }
    if (dialog.value || !lettersAct.value || isTyping(event.target)) return;
    const isChord = performance.now() - chord < CHORD_MS;
    const action = BY_KEY.get(isChord ? `g ${event.key}` : event.key);
    chord = !isChord && event.key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
    if (!action || action.isOffered?.() === false) return;
    event.preventDefault();
    action.run();
}

function isTyping(target: EventTarget | null): boolean {
    return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
