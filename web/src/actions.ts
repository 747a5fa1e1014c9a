// Keyboard actions. Single-letter shortcuts are inactive while typing and can be switched off.
import { signal } from "@preact/signals";

import { clock, hasLake, shown } from "./app";
import { copy } from "./clipboard";
import { commandOf } from "./commands";
import { closeDialog, dialog, openDialog } from "./components/dialogs";
import { fleetChosen } from "./lake";
import { savePicture } from "./picture";
import { choose, chosen, explainChosen, requestOfChosen } from "./selection";
import { go, view } from "./state";
import { PAGE_LIST } from "./tabs";
import { theme } from "./theme";
import { cursorTime, hasRows, hideDump, dumpTime, showDump } from "./threads";
import { clamp, length, zoomed } from "./times";

export interface Action {
    readonly name: string;
    /** As shown: `g t`, `Ctrl+K`. */
    readonly keys: string;
    readonly run: () => void;
    /** Whether the action is available now; always if absent. */
    readonly isOffered?: () => boolean;
}

/** Actions available on this page of this server. */
export function offered(): readonly Action[] {
    return ACTIONS.filter((action) => action.isOffered?.() ?? true);
}

/** The fleet page has no recording window to move. */
const ofRecordings = () => view.value.page !== "fleet";

/** Whether single-letter shortcuts are on; assistive tools may send letters by accident. */
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

/** In charts of threads with samples `d` shows a thread dump, so it does on the page as well. */
function laterOrStacks(): void {
    const hasStacks = view.value.page === "threads" && hasRows("stack_sample");
    if (hasStacks) showDump(cursorTime(), null);
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
    { name: "later; on threads with samples: all stacks at the cursor", keys: "d", run: laterOrStacks, isOffered: ofRecordings },
    { name: "show the whole recording", keys: "0", run: () => go({ window: null }), isOffered: ofRecordings },
    { name: "back", keys: "Backspace", run: () => history.back() },
    { name: "set the window as baseline, or clear the baseline", keys: "v", run: () => go({ baseline: view.value.baseline ? null : shown.value }), isOffered: ofRecordings },
    { name: "bookmarks", keys: "m", run: () => openDialog("bookmarks"), isOffered: ofRecordings },
    { name: "explain the selected row", keys: "e", run: explainChosen, isOffered: () => ofRecordings() && requestOfChosen() !== null },
    { name: "copy the table", keys: "y", run: copyTable },
    { name: "copy the command for this view", keys: "Y", run: () => void copy(commandOf(), "command") },
    { name: "save this page as PNG", keys: "P", run: () => void savePicture() },
    { name: "copy the link", keys: "l", run: () => void copy(location.href, "link") },
    { name: "switch between the light and dark theme", keys: "", run: theme.toggle },
    { name: "turn single-letter shortcuts on or off", keys: "", run: () => (lettersAct.value = !lettersAct.value) },
    { name: "help", keys: "?", run: () => openDialog("help") },
];

const BY_KEY = new Map(ACTIONS.filter((action) => action.keys).map((action) => [action.keys, action]));

/** Time after `g` in which the second key counts, ms. */
const CHORD_MS = 1200;
let chord = Number.NEGATIVE_INFINITY;

/** Handles keys for the whole page, after the charts handled their own. */
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
        else if (dumpTime() !== null) hideDump();
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
