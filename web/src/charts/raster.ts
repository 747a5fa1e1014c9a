// Rasterizes runs: the share of each group in each pixel's time, and its colour.
import { type Palette, hashed, mixed, type Packed } from "./colour";
import { CLOSE_NS, isFree, sampleColour } from "./sample_paint";
import { CELLS, type Piece, tilesOf, type TileStore } from "./tiles";
import { nsPerPixel, type TimeScale } from "./scale";

/** Group shares of each pixel of a lane, and the value that lasted longest in it. */
export class Columns {
    readonly shares: Float32Array;
    readonly known: Float32Array;
    readonly value: Int32Array;
    readonly weight: Float32Array;
    nsPerPixel = 0;

    constructor(readonly width: number) {
        this.shares = new Float32Array(width * 4);
        this.known = new Float32Array(width);
        this.value = new Int32Array(width);
        this.weight = new Float32Array(width);
    }

    clear(): void {
        this.shares.fill(0);
        this.known.fill(0);
        this.value.fill(-1);
        this.weight.fill(0);
    }

    /** Adds the shares of another lane; the longest value is not meaningful for several lanes. */
    sum(other: Columns): void {
        for (let at = 0; at < this.shares.length; at += 1) this.shares[at] = (this.shares[at] ?? 0) + (other.shares[at] ?? 0);
        for (let x = 0; x < this.width; x += 1) this.known[x] = (this.known[x] ?? 0) + (other.known[x] ?? 0);
    }

    /** Adds the runs of a piece to the pixels that they touch, weighted by their time in each. */
    add(piece: Piece, scale: TimeScale, from: number, to: number): void {
        const { runs, begin, cell } = piece;
        const perPixel = nsPerPixel(scale);
        this.nsPerPixel = perPixel;
        const first = scale.window.begin;
        for (let row = piece.from; row < piece.to; row += 1) {
            const start = Math.max(begin + (runs.x[row] ?? 0) * cell, from);
            const end = Math.min(begin + ((runs.x[row] ?? 0) + (runs.n[row] ?? 0)) * cell, to);
            if (end <= start) continue;
            const left = (start - first) / perPixel;
            const right = (end - first) / perPixel;
            if (right <= 0 || left >= this.width) continue;
            this.#spread(piece, row, Math.max(left, 0), Math.min(right, this.width));
        }
    }

    #spread({ runs }: Piece, row: number, left: number, right: number): void {
        const [a, b, c, d] = runs.shares;
        const value = runs.value[row] ?? -1;
        const last = Math.min(Math.ceil(right), this.width) - 1;
        for (let x = Math.floor(left); x <= last; x += 1) {
            const part = Math.min(right, x + 1) - Math.max(left, x);
            const share = part / 255;
            const at = x * 4;
            this.shares[at] = (this.shares[at] ?? 0) + (a[row] ?? 0) * share;
            this.shares[at + 1] = (this.shares[at + 1] ?? 0) + (b[row] ?? 0) * share;
            this.shares[at + 2] = (this.shares[at + 2] ?? 0) + (c[row] ?? 0) * share;
            this.shares[at + 3] = (this.shares[at + 3] ?? 0) + (d[row] ?? 0) * share;
            this.known[x] = (this.known[x] ?? 0) + part;
            if (part > (this.weight[x] ?? 0)) {
                this.weight[x] = part;
                this.value[x] = value;
            }
        }
    }
}

/** Collects the data of a lane in the window; false if a tile is still missing. */
export function gather(columns: Columns, store: TileStore, lane: number, scale: TimeScale, level: number): boolean {
    columns.clear();
    const [first, last] = tilesOf(scale.window, level);
    const size = 2 ** level * CELLS;
    let isWhole = true;
    for (let index = first; index <= last; index += 1) {
        const piece = store.piece(level, index, lane);
        if (piece) columns.add(piece, scale, index * size, (index + 1) * size);
        else isWhole = false;
    }
    return isWhole;
}

export interface Band {
    readonly top: number;
    readonly height: number;
}

export interface Image {
    readonly words: Uint32Array;
    readonly width: number;
    readonly height: number;
}

export type TrackName = "states" | "calls" | "cpus" | "locks" | "block" | "samples";

/** Colours of the four groups of a track. */
export function groupColours(track: TrackName, palette: Palette): readonly [Packed, Packed, Packed, Packed] {
    const { series } = palette;
    const of = (at: number) => series[at] ?? palette.asleep;
    switch (track) {
        case "states":
            return [palette.running, palette.runnable, palette.blocked, palette.asleep];
        case "calls":
            return [of(1), of(4), palette.asleep, of(6)];
        case "cpus":
            return [palette.running, mixed(palette.running, palette.card, 0.45), palette.blocked, palette.asleep];
        case "locks":
            return [palette.blocked, palette.runnable, palette.asleep, palette.asleep];
        case "block":
            return [of(1), of(2), of(4), of(6)];
        case "samples":
            return [palette.running, palette.asleep, palette.inferred, palette.unseen];
    }
}

/**
 * Paints a lane: each pixel column stacks the groups by their share of its time. A group with any time gets
 * at least one pixel, so that short states are visible at every zoom.
 */
export function paint(image: Image, columns: Columns, band: Band, track: TrackName, palette: Palette): void {
    if (track === "samples") return paintSamples(image, columns, band, palette);
    const colours = groupColours(track, palette);
    const bottom = Math.min(band.top + band.height, image.height);
    const heights = new Int32Array(4);
    for (let x = 0; x < columns.width; x += 1) {
        if ((columns.known[x] ?? 0) <= 0) {
            dot(image, x, band, palette);
            continue;
        }
        stack(columns, x, band.height, track === "states", heights);
        let y = bottom - 1;
        for (let group = 0; group < 4; group += 1) {
            const height = heights[group] ?? 0;
            if (height === 0) continue;
            const colour = colourOf(track, group, columns.value[x] ?? -1, colours, palette);
            const texture = textureOf(track, group);
            const other = texture === "solid" ? colour : mixed(colour, palette.card, 0.6);
            for (let step = 0; step < height && y >= band.top; step += 1, y -= 1) {
                const isOther = texture === "striped" ? y % 3 === 0 : texture === "hatched" && (x + y) % 5 === 0;
                if (y >= 0) image.words[y * image.width + x] = isOther ? other : colour;
            }
        }
        if (track === "states" && y >= bottom - 2) thin(image, x, bottom, palette);
    }
}

/** The same for samples, coloured by the longest one in the pixel. */
function paintSamples(image: Image, columns: Columns, band: Band, palette: Palette): void {
    const bottom = Math.min(band.top + band.height, image.height);
    const heights = new Int32Array(4);
    const isClose = columns.nsPerPixel < CLOSE_NS;
    for (let x = 0; x < columns.width; x += 1) {
        if ((columns.known[x] ?? 0) <= 0) {
            dot(image, x, band, palette);
            continue;
        }
        stack(columns, x, band.height, false, heights);
        const value = columns.value[x] ?? -1;
        let y = bottom - 1;
        for (let group = 0; group < 4; group += 1) {
            const height = heights[group] ?? 0;
            const colour = sampleColour(group, value, isClose, palette);
            for (let step = 0; step < height && y >= band.top; step += 1, y -= 1) {
                if (y >= 0 && !isFree(group, value, x, y)) image.words[y * image.width + x] = colour;
            }
        }
    }
}

/** Pixels of each group in a column, at least one for a group with any time. */
function stack(columns: Columns, x: number, height: number, leavesLast: boolean, heights: Int32Array): void {
    const known = columns.known[x] ?? 1;
    let left = height;
    for (let group = 0; group < 4; group += 1) {
        const share = (columns.shares[x * 4 + group] ?? 0) / Math.max(known, 1e-9);
        const isLast = leavesLast && group === 3;
        const wanted = isLast || share <= 0.0005 ? 0 : Math.max(Math.round(share * height), 1);
        heights[group] = Math.min(wanted, left);
        left -= heights[group] ?? 0;
    }
}

function colourOf(track: TrackName, group: number, value: number, colours: readonly Packed[], palette: Palette): Packed {
    if (track === "cpus" && group < 2 && value >= 0) {
        const own = hashed(palette, value);
        return group === 0 ? own : mixed(own, palette.card, 0.35);
    }
    if (track === "block" && value > 1) {
        return mixed(colours[group] ?? 0, 0xff000000, Math.min(Math.log2(value) * 0.06, 0.4));
    }
    return colours[group] ?? palette.asleep;
}

/** Groups differ without colours, too: waits for a CPU are striped, waits for a disk or a lock hatched. */
function textureOf(track: TrackName, group: number): "solid" | "striped" | "hatched" {
    if ((track === "states" || track === "locks") && group === 1) return "striped";
    return group === 2 && track !== "calls" ? "hatched" : "solid";
}

/** Asleep: a line at the bottom. */
function thin(image: Image, x: number, bottom: number, palette: Palette): void {
    if (bottom - 1 >= 0) image.words[(bottom - 1) * image.width + x] = palette.asleep;
}

/** No data: dots. */
function dot(image: Image, x: number, band: Band, palette: Palette): void {
    const y = band.top + (band.height >> 1);
    if (x % 6 === 0 && y >= 0 && y < image.height) image.words[y * image.width + x] = palette.line;
}
