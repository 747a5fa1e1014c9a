// The two layers of a lane chart: the raster, and the overlay.
import type { Clock, Span } from "../times";
import type { Palette } from "./colour";
import {
    type Arrow,
    AXIS_HEIGHT,
    drawArrows,
    drawAxis,
    drawChosen,
    drawCursor,
    drawLinks,
    drawMarks,
    drawPinned,
    drawRange,
    drawStops,
    type Link,
    type Mark,
} from "./overlay";
import { Columns, gather, type Image, paint, type TrackName } from "./raster";
import type { ChartRow } from "./rows";
import { nsPerPixel, type TimeScale } from "./scale";
import { levelOf, type TileStore } from "./tiles";

/** One raster of a lane: its track, and its position from the top of the row in pixels. */
export interface Band {
    readonly track: TrackName;
    readonly top: number;
    readonly height: number;
    /** Where not every level exists: the level to use for a window instead of the wanted one. */
    readonly levelFor?: (wanted: number, window: Span) => number;
}

/** The level at which a band is drawn. */
export function levelIn(band: Band, scale: TimeScale): number {
    const wanted = levelOf(nsPerPixel(scale));
    return band.levelFor ? band.levelFor(wanted, scale.window) : wanted;
}

export interface Stored {
    readonly band: Band;
    readonly store: TileStore;
}

export interface Drawn {
    readonly scale: TimeScale;
    readonly seen: readonly ChartRow[];
    readonly top: number;
    readonly height: number;
    readonly ratio: number;
    readonly palette: Palette;
}

export function drawBase(canvas: HTMLCanvasElement, drawn: Drawn & { readonly stores: readonly Stored[] }): void {
    const { scale, seen, top, ratio, palette, stores } = drawn;
    const width = Math.max(Math.round(scale.width * ratio), 1);
    const height = Math.max(Math.round((drawn.height + AXIS_HEIGHT) * ratio), 1);
    if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
    }
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const data = context.createImageData(width, height);
    const image: Image = { words: new Uint32Array(data.data.buffer), width, height };
    image.words.fill(palette.card);
    const columns = new Columns(width);
    const fine = { window: scale.window, width };
    const clip = Math.round(AXIS_HEIGHT * ratio);
    for (const row of seen) {
        if (row.kind === "group") {
            const y = Math.round((row.top - top + AXIS_HEIGHT + 2) * ratio);
            if (row.lanes.length > 0 && y >= clip) drawSummed(image, row.lanes, { fine, scale }, { top: y, height: Math.round((row.height - 4) * ratio) }, { palette, stores });
            continue;
        }
        for (const { band, store } of stores) {
            gather(columns, store, row.lane.lane, fine, levelIn(band, scale));
            const y = Math.round((row.top - top + AXIS_HEIGHT + band.top) * ratio);
            if (y >= clip) paint(image, columns, { top: y, height: Math.round(band.height * ratio) }, band.track, palette);
        }
    }
    context.putImageData(data, 0, 0);
}

/** The sum of several lanes, from the first track with data about them. */
function drawSummed(
    image: Image,
    lanes: readonly number[],
    { fine, scale }: { readonly fine: TimeScale; readonly scale: TimeScale },
    place: { readonly top: number; readonly height: number },
    { palette, stores }: { readonly palette: Palette; readonly stores: readonly Stored[] },
): void {
    const sum = new Columns(image.width);
    const one = new Columns(image.width);
    for (const { band, store } of stores) {
        if (band.track === "calls") continue;
        sum.clear();
        for (const lane of lanes) {
            gather(one, store, lane, fine, levelIn(band, scale));
            sum.sum(one);
        }
        if (!sum.known.some((known) => known > 0)) continue;
        paint(image, sum, place, band.track, palette);
        return;
    }
}

export type Over = Drawn & {
        readonly clock: Clock;
        readonly baseline: Span | null;
        readonly marks: readonly Mark[];
        readonly arrows: readonly Arrow[];
        readonly links: readonly Link[];
        readonly stops: readonly Span[];
        readonly pinned: number | null;
        readonly chosen: ReadonlySet<number>;
        /** All rows, including those scrolled out of view. */
        readonly rows: readonly ChartRow[];
        readonly cursor: { readonly at: number; readonly y: number } | null;
        readonly range: { readonly span: Span; readonly isBaseline: boolean } | null;
    };

export function drawOver(canvas: HTMLCanvasElement, drawn: Over): void {
    const { scale, seen, top, ratio, palette, clock } = drawn;
    const height = drawn.height + AXIS_HEIGHT;
    canvas.width = Math.max(Math.round(scale.width * ratio), 1);
    canvas.height = Math.max(Math.round(height * ratio), 1);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawStops(context, scale, palette, drawn.stops, height);
    const chosen = seen.filter((row) => row.kind === "lane" && drawn.chosen.has(row.lane.lane));
    drawChosen(context, palette, chosen.map((row) => ({ top: row.top - top + AXIS_HEIGHT, height: row.height })), scale.width);
    drawAxis(context, scale, clock, palette, height);
    drawMarks(context, scale, palette, drawn.marks, height);
    if (drawn.baseline) drawRange(context, scale, drawn.baseline, palette.select, height);
    if (drawn.range) drawRange(context, scale, drawn.range.span, drawn.range.isBaseline ? palette.select : palette.accent, height);
    const middle = new Map(seen.flatMap((row) => (row.kind === "lane" ? [[row.lane.lane, row.top - top + AXIS_HEIGHT + row.height / 2] as const] : [])));
    drawArrows(context, scale, palette, drawn.arrows, (lane) => middle.get(lane) ?? null);
    if (drawn.links.length > 0) {
        const all = new Map(drawn.rows.flatMap((row) => (row.kind === "lane" ? [[row.lane.lane, row.top - top + AXIS_HEIGHT + row.height / 2] as const] : [])));
        context.save();
        context.beginPath();
        context.rect(0, AXIS_HEIGHT, scale.width, height - AXIS_HEIGHT);
        context.clip();
        drawLinks(context, scale, palette, drawn.links, (lane) => all.get(lane) ?? null);
        context.restore();
    }
    if (drawn.pinned !== null) drawPinned(context, scale, palette, drawn.pinned, height);
    if (drawn.cursor) drawCursor(context, scale, clock, palette, drawn.cursor.at, height);
}
