// State shared by all pages: the recordings, the selected one, and announcements.
import { computed, signal } from "@preact/signals";

import { type Api, ApiError } from "./api";
import { toBig } from "./exact";
import type { FleetInfo } from "./fleet";
import { view } from "./state";
import type { Clock, Span } from "./times";
import type { RecordingInfo, Recordings } from "./types";

export const api = signal<Api | null>(null);
export const recordings = signal<Recordings | null>(null);
export const failure = signal<ApiError | null>(null);
/** Queries of the server's lake, if it has one; null until known. */
export const fleet = signal<FleetInfo | null>(null);
export const hasLake = computed(() => (fleet.value?.lake ?? null) !== null);
/** Text for screen readers about the last change. */
export const announced = signal("");

export const recording = computed<RecordingInfo | null>(() => {
    const all = recordings.value?.recordings ?? [];
    return all.find((one) => one.id === view.value.recording) ?? all[0] ?? null;
});

export const clock = computed<Clock>(() => {
    const of = recording.value;
    if (!of) return { begin: 0n, length: 1, zone: null };
    const begin = toBig(of.begin_ns);
    return { begin, length: Math.max(Number(toBig(of.end_ns) - begin), 1), zone: of.zone };
});

/** The window, or the whole recording. */
export const shown = computed<Span>(() => view.value.window ?? { begin: 0, end: clock.value.length });

/** Kinds that the recording has rows of. */
export function kindsOf(of: RecordingInfo | null): ReadonlySet<string> {
    return new Set(of?.kinds.flatMap((kind) => (kind.recorded ? [kind.kind] : [])));
}

const LIVE_MS = 2000;
const BUILDING_MS = 1000;

/** Loads the list of recordings, and reloads it while it changes. */
export async function load(from: Api): Promise<void> {
    api.value = from;
    try {
        from.forget("recordings");
        const before = recordings.value;
        // Shape as in docs/openapi.json, which the tests of the server check.
        const now = (await from.json("recordings", {})) as Recordings;
        const isNewer = before !== null && hasChanged(before, now);
        if (!isNewer || from.pace.isReady()) {
            if (isNewer) from.forget();
            recordings.value = now;
        }
        failure.value = null;
    } catch (error) {
        failure.value = error instanceof ApiError ? error : new ApiError(String(error), 0);
    }
    if (from.isReport) return;
    if (!fleet.value && !failure.value) void loadFleet(from);
    const all = recordings.value?.recordings ?? [];
    const isLive = all.some((one) => one.live);
    const isBuilding = all.some((one) => one.tiles.state === "building");
    if (isLive || isBuilding || failure.value) {
        setTimeout(() => void load(from), isLive && !isBuilding ? LIVE_MS : BUILDING_MS);
    }
}

/** Loaded once: the lake of a server does not change while it runs. */
async function loadFleet(from: Api): Promise<void> {
    try {
        fleet.value = (await from.json("fleet", {})) as FleetInfo;
    } catch (error) {
        // A server that rejects the request has no lake; one that does not respond is tried again.
        if (error instanceof ApiError && error.status >= 400) fleet.value = { lake: null, queries: [] };
    }
}

function hasChanged(before: Recordings, now: Recordings): boolean {
    const states = (of: Recordings) => of.recordings.map((one) => `${one.id} ${one.digest} ${one.end_ns}`).join();
    return states(before) !== states(now);
}

export function announce(text: string): void {
    announced.value = text;
}
