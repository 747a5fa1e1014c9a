// Tracks: their lanes and tiles.
import { ARROW_FORM } from "./api";
import { api, recording } from "./app";
import { type Lane, tilesOf, type TrackName } from "./charts/index";
import { Island } from "./island";
import type { Span } from "./times";

interface LaneInfo {
    readonly lane: number;
    readonly name: string | null;
    readonly tid?: number | null;
    readonly pid?: number | null;
    readonly process?: string | null;
    readonly busy_ns?: number;
}

export interface Track {
    readonly track: TrackName;
    readonly values: readonly string[];
    readonly groups: readonly string[];
    readonly total: number;
    readonly lanes: readonly LaneInfo[];
}

export function lanesOf(track: Track): Lane[] {
    return track.lanes.map((lane) => ({
        lane: lane.lane,
        name: lane.name ?? `${track.track === "block" ? "device" : "thread"} ${lane.lane}`,
        tid: lane.tid ?? null,
        pid: lane.pid ?? null,
        process: lane.process ?? null,
        ...(lane.busy_ns === undefined ? {} : { busy_ns: lane.busy_ns }),
    }));
}

/** Fetches tiles of a track. The URLs include the recording's digest, so that browsers may cache them. */
export function fetchTiles(track: TrackName) {
    return (level: number, index: number, lanes: readonly number[], signal: AbortSignal): Promise<ArrayBuffer> => {
        const from = api.value;
        const of = recording.value;
        if (!from || !of) return Promise.reject(new Error("no recording"));
        const parameters = { rec: of.id, digest: of.digest, track, level, index, lanes: lanes.join(",") };
        return from.bytes("tile", parameters, ARROW_FORM, signal);
    };
}

/** A report has tiles of some levels only: the finest one that covers the window, or a coarser one. */
export function levelsOf(track: TrackName): ((wanted: number, window: Span) => number) | undefined {
    const from = api.value?.transport;
    if (!(from instanceof Island)) return undefined;
    return (wanted, window) => {
        const levels = from.levels(track, (level) => tilesOf(window, level)[0], (level) => tilesOf(window, level)[1]);
        return levels.find((level) => level >= wanted) ?? levels[levels.length - 1] ?? wanted;
    };
}
