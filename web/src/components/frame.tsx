import type { ComponentChildren } from "preact";

import { announced, api, clock, fleet, hasLake, recording, recordings, shown } from "../app";
import { commandOf } from "../commands";
import { copy } from "../clipboard";
import { savePicture } from "../picture";
import { go, view } from "../state";
import { PAGE_LIST, type PageInfo, pageInfo } from "../tabs";
import { theme } from "../theme";
import { dateOf, timeOfDay } from "../times";
import { isRecorded, pageState, stateTitle } from "../topic_states";
import { compact, duration, grouped, plural } from "../units";
import { visible } from "../visible";
import { Chips } from "./chips";
import { Drawer } from "./drawer";
import { openDialog } from "./dialogs";
import { FleetDrawer } from "./fleet_drawer";
import { Overview } from "./overview";
import { Toast } from "./toast";

/** The frame of every page. */
export function Frame({ children }: { readonly children: ComponentChildren }) {
    const isFleet = view.value.page === "fleet";
    return (
        <>
            <a class="skip" href="#main" onClick={focusMain}>
                skip to the content
            </a>
            <nav class="rail" aria-label="pages">
                <p class="brand">whyslow</p>
                <ul>
                    {PAGE_LIST.filter(isOffered).map((page) => (
                        <li key={page.id}>
                            <PageLink page={page} />
                        </li>
                    ))}
                </ul>
            </nav>
            <header class="top">
                {isFleet ? <Lake /> : <Recording />}
                {!isFleet && <WindowBox />}
                {!isFleet && <Chips />}
                <Tools />
            </header>
            {isFleet ? <div /> : <Overview />}
            <main id="main" tabIndex={-1}>
                <h1>{pageInfo(view.value.page).title}</h1>
                {!isFleet && <Losses />}
                {children}
            </main>
            {isFleet ? <FleetDrawer /> : <Drawer />}
            <Toast />
            <div class="unseen" role="status" aria-live="polite">
                {announced.value}
            </div>
        </>
    );
}

function focusMain(event: Event): void {
    event.preventDefault();
    document.getElementById("main")?.focus();
}

/** SQL needs a server, and the fleet page a server with a lake. */
function isOffered(page: PageInfo): boolean {
    if (page.id === "fleet") return hasLake.value;
    return page.id !== "sql" || !api.value?.isReport;
}

/** A page without recorded events is greyed out, but can be opened: it shows how to record them. */
function PageLink({ page }: { page: PageInfo }) {
    const { state, count } = pageState(page.kinds, recording.value);
    const isHere = view.value.page === page.id;
    const hint = state === "recorded" ? (count === null ? "" : `${plural(count, "event")} · `) : `${stateTitle(state)} · `;
    return (
        <button
            type="button"
            class={isRecorded(state) ? undefined : "missing"}
            aria-current={isHere ? "page" : undefined}
            title={`${hint}g ${page.key}`}
            onClick={() => go({ page: page.id })}
        >
            {page.title}
            {count !== null && <span class="count">{compact(count)}</span>}
            {!isRecorded(state) && <span class="unseen"> ({stateTitle(state)})</span>}
        </button>
    );
}

function Recording() {
    const all = recordings.value?.recordings ?? [];
    const of = recording.value;
    if (!of) return <p class="recording">no recording</p>;
    const name = `${visible(of.name)}${of.host ? ` · ${visible(of.host)}` : ""}`;
    if (all.length === 1) {
        return (
            <p class="recording">
                <b>{name}</b> {of.live && <span class="badge live">live</span>}
            </p>
        );
    }
    return (
        <label class="recording">
            <span class="unseen">recording</span>
            <select value={of.id} onChange={(event) => go({ recording: event.currentTarget.value, window: null, selected: null, baseline: null })}>
                {all.map((one) => (
                    <option key={one.id} value={one.id}>
                        {visible(one.name)}
                    </option>
                ))}
            </select>
        </label>
    );
}

/** Shown instead of the recording on the fleet page. */
function Lake() {
    const lake = fleet.value?.lake;
    return <p class="recording">{lake ? <b>{visible(lake)}</b> : "no lake"}</p>;
}

function WindowBox() {
    const { begin, end } = shown.value;
    const isAll = view.value.window === null;
    const step = (end - begin) / 1000;
    return (
        <p class="window" aria-label="window">
            <span title={dateOf(clock.value, begin)}>
                {timeOfDay(clock.value, begin, step)} … {timeOfDay(clock.value, end, step)}
            </span>{" "}
            <b>{duration(end - begin)}</b> <span class="quiet">{clock.value.zone ?? "UTC"}</span>
            {!isAll && (
                <button type="button" class="small" onClick={() => go({ window: null })}>
                    all
                </button>
            )}
        </p>
    );
}

function Tools() {
    const otherTheme = theme.name.value === "dark" ? "light" : "dark";
    return (
        <p class="tools">
            <button type="button" onClick={() => openDialog("search")} title="/">
                search
            </button>
            {view.value.page !== "fleet" && (
                <button type="button" onClick={() => openDialog("bookmarks")}>
                    bookmarks
                </button>
            )}
            <button type="button" onClick={() => void copy(commandOf(), "command")} title="Y: the command for this view">
                copy command
            </button>
            <button type="button" onClick={() => void copy(location.href, "link")}>
                copy link
            </button>
            <button type="button" onClick={() => void savePicture()} title="P: this page as PNG">
                PNG
            </button>
            <button type="button" onClick={theme.toggle} aria-label={`switch to the ${otherTheme} theme`}>
                {otherTheme}
            </button>
            <button type="button" onClick={() => openDialog("help")} title="?" aria-label="help">
                ?
            </button>
        </p>
    );
}

function Losses() {
    const lost = recording.value?.lost ?? [];
    if (lost.length === 0) return null;
    const count = lost.reduce((sum, one) => sum + (one.count ?? 0), 0);
    return (
        <p class="banner" role="note">
            ! {count ? grouped(count) : "an unknown number of"} events were lost during recording: data of that time may be missing or truncated
        </p>
    );
}
