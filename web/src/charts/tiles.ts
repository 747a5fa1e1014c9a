// Tiles of tracks: requested as they come into view, cached, and replaced by coarser ones until they arrive.
import { tableFromIPC } from "@uwdata/flechette";

import type { Span } from "../times";

/** Cells per tile. */
export const CELLS = 1024;
const LEVEL_MAX = 50;
/** Cached tiles; a full one of forty lanes takes a few hundred kB at most. */
const KEPT = 600;
/** Number of coarser levels searched for a replacement. */
const COARSER = 12;

/** Runs of one tile as columns, grouped by lane. */
export interface Runs {
    readonly x: ArrayLike<number>;
    readonly n: ArrayLike<number>;
    readonly value: ArrayLike<number>;
    readonly shares: readonly [ArrayLike<number>, ArrayLike<number>, ArrayLike<number>, ArrayLike<number>];
    readonly count: ArrayLike<number>;
    readonly longest: ArrayLike<number | bigint>;
    /** Rows of each lane. */
    readonly lanes: ReadonlyMap<number, readonly [number, number]>;
}

/** A lane's part of a tile. */
export interface Piece {
    readonly runs: Runs;
    readonly from: number;
    readonly to: number;
    /** Start of the tile and length of its cells. */
    readonly begin: number;
    readonly cell: number;
}

export type Fetch = (level: number, index: number, lanes: readonly number[], signal: AbortSignal) => Promise<ArrayBuffer>;

interface Kept {
    readonly parts: Runs[];
    readonly lanes: Set<number>;
    readonly pending: Set<number>;
}

/** Finest level whose cells are no wider than a pixel. */
export function levelOf(nsPerPixel: number): number {
    return Math.min(Math.max(Math.floor(Math.log2(Math.max(nsPerPixel, 1))), 0), LEVEL_MAX);
}

/** First and last tile that a window touches. */
export function tilesOf(window: Span, level: number): readonly [number, number] {
    const size = 2 ** level * CELLS;
    return [Math.max(Math.floor(window.begin / size), 0), Math.max(Math.ceil(window.end / size) - 1, 0)];
}

export class TileStore {
    readonly #kept = new Map<string, Kept>();
    #control = new AbortController();
    #level = -1;

    /** `changed` is called when new data can be drawn. */
    constructor(
        private readonly fetch: Fetch,
        private readonly changed: () => void,
        private readonly failed: (error: unknown) => void,
    ) {}

    /** Requests missing tiles of these lanes. A new level aborts the requests for the previous one. */
    want(window: Span, level: number, lanes: readonly number[]): void {
        if (level !== this.#level) {
            this.#control.abort();
            this.#control = new AbortController();
            this.#level = level;
            for (const kept of this.#kept.values()) kept.pending.clear();
        }
        const [first, last] = tilesOf(window, level);
        for (let index = first; index <= last; index += 1) this.#request(level, index, lanes);
        this.#trim();
    }

    #request(level: number, index: number, lanes: readonly number[]): void {
        const place = `${level}/${index}`;
        const kept = this.#kept.get(place) ?? { parts: [], lanes: new Set(), pending: new Set() };
        // Most recently used: moves to the end of the eviction order.
        this.#kept.delete(place);
        this.#kept.set(place, kept);
        const missing = lanes.filter((lane) => !kept.lanes.has(lane) && !kept.pending.has(lane));
        if (missing.length === 0) return;
        for (const lane of missing) kept.pending.add(lane);
        const { signal } = this.#control;
        this.fetch(level, index, missing, signal).then(
            (bytes) => {
                if (signal.aborted) return;
                kept.parts.push(readRuns(bytes));
                for (const lane of missing) {
                    kept.lanes.add(lane);
                    kept.pending.delete(lane);
                }
                this.changed();
            },
            (error: unknown) => {
                for (const lane of missing) kept.pending.delete(lane);
                if (!signal.aborted) this.failed(error);
            },
        );
    }

    /** Data of a lane in a tile, or in the next coarser one in the cache. */
    piece(level: number, index: number, lane: number): Piece | null {
        for (let up = 0; up <= COARSER && level + up <= LEVEL_MAX; up += 1) {
            const at = Math.floor(index / 2 ** up);
            const kept = this.#kept.get(`${level + up}/${at}`);
            if (!kept?.lanes.has(lane)) continue;
            const cell = 2 ** (level + up);
            for (const runs of kept.parts) {
                const rows = runs.lanes.get(lane);
                if (rows) return { runs, from: rows[0], to: rows[1], begin: at * CELLS * cell, cell };
            }
            // The tile is loaded and has no runs of this lane.
            return { runs: NOTHING, from: 0, to: 0, begin: at * CELLS * cell, cell };
        }
        return null;
    }

    /** The value of a lane at a time; null if there is none or it is not loaded yet. */
    valueAt(level: number, lane: number, at: number): number | null {
        const piece = this.piece(level, Math.floor(at / (2 ** level * CELLS)), lane);
        if (!piece) return null;
        const cell = Math.floor((at - piece.begin) / piece.cell);
        for (let row = piece.from; row < piece.to; row += 1) {
            const x = piece.runs.x[row] ?? 0;
            if (x <= cell && cell < x + (piece.runs.n[row] ?? 0)) return piece.runs.value[row] ?? null;
        }
        return null;
    }

    clear(): void {
        this.#control.abort();
        this.#control = new AbortController();
        this.#kept.clear();
        this.#level = -1;
    }

    #trim(): void {
        for (const place of this.#kept.keys()) {
            if (this.#kept.size <= KEPT) return;
            this.#kept.delete(place);
        }
    }
}

const EMPTY = new Uint8Array(0);
const NOTHING: Runs = {
    x: EMPTY,
    n: EMPTY,
    value: EMPTY,
    shares: [EMPTY, EMPTY, EMPTY, EMPTY],
    count: EMPTY,
    longest: EMPTY,
    lanes: new Map(),
};

/** Runs of an Arrow stream; its columns are those of docs/api.md. */
export function readRuns(bytes: ArrayBuffer): Runs {
    const table = tableFromIPC(new Uint8Array(bytes), { useBigInt: false });
    const column = (name: string): ArrayLike<number> => table.getChild(name).toArray() as ArrayLike<number>;
    const lane = column("lane");
    return {
        x: column("x"),
        n: column("n"),
        value: column("value"),
        shares: [column("a"), column("b"), column("c"), column("d")],
        count: column("count"),
        longest: column("longest_ns"),
        lanes: rowsOf(lane),
    };
}

/** First row and end row of each lane. */
export function rowsOf(lane: ArrayLike<number>): Map<number, readonly [number, number]> {
    const found = new Map<number, readonly [number, number]>();
    let from = 0;
    for (let at = 1; at <= lane.length; at += 1) {
        const of = lane[from];
        if (of === undefined || lane[at] === of) continue;
        found.set(of, [from, at]);
        from = at;
    }
    return found;
}
