// Overlay on the raster: axis, cursor, ranges, marks, arrows.
import { css, type Palette } from "./colour";
import { ticks, toX, type TimeScale } from "./scale";
import { axisText, type Clock, type Span, timeOfDay } from "../times";
import { duration } from "../units";

export const AXIS_HEIGHT = 20;

export interface Mark {
    readonly at: number;
    readonly text: string;
    readonly kind: "finding" | "bookmark" | "hit";
}

export interface Arrow {
    readonly at: number;
    /** Source and target lane; null is an interrupt. */
    readonly from: number | null;
    readonly to: number;
}

export function drawAxis(context: CanvasRenderingContext2D, scale: TimeScale, clock: Clock, palette: Palette, height: number): void {
    const { step, at } = ticks(scale, 110, clock.begin);
    context.font = palette.font;
    context.textBaseline = "middle";
    for (const ns of at) {
        const x = Math.round(toX(scale, ns)) + 0.5;
        context.fillStyle = css(palette.line);
        context.globalAlpha = 0.6;
        context.fillRect(x, AXIS_HEIGHT, 1, height);
        context.globalAlpha = 1;
        context.fillStyle = palette.quiet;
        context.fillText(axisText(clock, ns, step), x + 3, AXIS_HEIGHT / 2);
    }
}

/** A range of time, with its length. */
export function drawRange(context: CanvasRenderingContext2D, scale: TimeScale, range: Span, colour: string, height: number): void {
    const left = toX(scale, range.begin);
    const right = toX(scale, range.end);
    context.fillStyle = colour;
    context.globalAlpha = 0.18;
    context.fillRect(left, 0, right - left, height);
    context.globalAlpha = 1;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right, 0, 1, height);
    if (right - left > 50) {
        context.textBaseline = "middle";
        context.textAlign = "center";
        context.fillText(duration(range.end - range.begin), (left + right) / 2, AXIS_HEIGHT / 2);
        context.textAlign = "start";
    }
}

export function drawCursor(context: CanvasRenderingContext2D, scale: TimeScale, clock: Clock, palette: Palette, at: number, height: number): void {
    const x = Math.round(toX(scale, at)) + 0.5;
    const step = (scale.window.end - scale.window.begin) / Math.max(scale.width, 1);
    const text = timeOfDay(clock, at, step * 10);
    context.font = palette.font;
    const width = context.measureText(text).width + 8;
    const left = Math.min(Math.max(x - width / 2, 0), scale.width - width);
    context.fillStyle = palette.accent;
    context.fillRect(x, AXIS_HEIGHT - 2, 1, height);
    context.fillRect(left, 1, width, AXIS_HEIGHT - 3);
    context.fillStyle = css(palette.card);
    context.textBaseline = "middle";
    context.fillText(text, left + 4, AXIS_HEIGHT / 2);
}

export function drawMarks(context: CanvasRenderingContext2D, scale: TimeScale, palette: Palette, marks: readonly Mark[], height: number): void {
    for (const mark of marks) {
        const x = toX(scale, mark.at);
        if (x < 0 || x > scale.width) continue;
        context.fillStyle = mark.kind === "finding" ? css(palette.blocked) : mark.kind === "hit" ? css(palette.runnable) : palette.accent;
        context.beginPath();
        context.moveTo(x - 4, AXIS_HEIGHT - 8);
        context.lineTo(x + 4, AXIS_HEIGHT - 8);
        context.lineTo(x, AXIS_HEIGHT);
        context.fill();
        context.globalAlpha = 0.5;
        context.fillRect(x, AXIS_HEIGHT, 1, height);
        context.globalAlpha = 1;
    }
}

/** A link between two lanes for a time: a lock wait with its holder, or simultaneous sampling gaps. */
export interface Link {
    readonly from: number;
    readonly to: number;
    readonly begin: number;
    readonly end: number;
    /** Confidence that they belong together. */
    readonly surety: "high" | "medium" | "low";
    /** An arrow from the waiter to the lock holder; a link without one names no cause. */
    readonly isArrow: boolean;
}

const DASHES: Readonly<Record<Link["surety"], readonly number[]>> = { high: [], medium: [], low: [4, 3] };

/** A line along the wait, then over to the other lane; thinner, then dashed, with lower confidence. */
export function drawLinks(
    context: CanvasRenderingContext2D,
    scale: TimeScale,
    palette: Palette,
    links: readonly Link[],
    middleOf: (lane: number) => number | null,
): void {
    context.save();
    for (const link of links) {
        const from = middleOf(link.from);
        const to = middleOf(link.to);
        const left = Math.max(toX(scale, link.begin), 0);
        const right = Math.min(toX(scale, link.end), scale.width);
        if (from === null || to === null || right < 0 || left > scale.width) continue;
        const x = placeOf(scale, link);
        context.strokeStyle = link.isArrow ? palette.text : css(palette.inferred);
        context.fillStyle = palette.text;
        context.lineWidth = link.surety === "high" ? 2 : 1;
        context.setLineDash([...(link.isArrow ? DASHES[link.surety] : [2, 3])]);
        context.beginPath();
        if (link.isArrow) {
            context.moveTo(left, from);
            context.lineTo(right, from);
        }
        const sign = to > from ? 1 : -1;
        context.moveTo(x, from);
        context.lineTo(x, link.isArrow ? to - sign * 4 : to);
        context.stroke();
        if (!link.isArrow) continue;
        context.setLineDash([]);
        context.beginPath();
        context.moveTo(x, to);
        context.lineTo(x - 4, to - sign * 7);
        context.lineTo(x + 4, to - sign * 7);
        context.fill();
    }
    context.restore();
}

/** Where a link crosses to the other lane: the middle of the visible part of its time. */
export function placeOf(scale: TimeScale, link: Link): number {
    const left = Math.max(toX(scale, link.begin), 0);
    const right = Math.min(toX(scale, link.end), scale.width);
    return (left + right) / 2;
}

/** Sampling gaps of all threads, drawn over all rows. */
export function drawStops(context: CanvasRenderingContext2D, scale: TimeScale, palette: Palette, stops: readonly Span[], height: number): void {
    context.fillStyle = css(palette.unseen);
    for (const stop of stops) {
        const left = Math.max(toX(scale, stop.begin), 0);
        const right = Math.min(toX(scale, stop.end), scale.width);
        if (right <= left) continue;
        context.globalAlpha = 0.14;
        context.fillRect(left, AXIS_HEIGHT, Math.max(right - left, 1), height);
        context.globalAlpha = 0.6;
        for (let y = AXIS_HEIGHT; y < height; y += 6) {
            context.fillRect(left, y, 1, 3);
            context.fillRect(right - 1, y, 1, 3);
        }
        if (right - left > 110) {
            context.globalAlpha = 1;
            context.font = palette.font;
            context.textBaseline = "middle";
            context.fillStyle = palette.quiet;
            context.fillText("process stopped", left + 4, AXIS_HEIGHT + 8);
            context.fillStyle = css(palette.unseen);
        }
    }
    context.globalAlpha = 1;
}

/** Highlighted rows. */
export function drawChosen(context: CanvasRenderingContext2D, palette: Palette, rows: readonly { readonly top: number; readonly height: number }[], width: number): void {
    context.fillStyle = palette.select;
    for (const row of rows) {
        context.globalAlpha = 0.22;
        context.fillRect(0, row.top, width, row.height);
        context.globalAlpha = 1;
        context.fillRect(0, row.top, 3, row.height);
    }
}

/** The time of the thread dump that is shown. */
export function drawPinned(context: CanvasRenderingContext2D, scale: TimeScale, palette: Palette, at: number, height: number): void {
    const x = Math.round(toX(scale, at)) + 0.5;
    if (x < 0 || x > scale.width) return;
    context.save();
    context.strokeStyle = palette.accent;
    context.lineWidth = 1;
    context.setLineDash([6, 3]);
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT);
    context.lineTo(x, height);
    context.stroke();
    context.restore();
}

/** Arrows from waker to wakee. */
export function drawArrows(
    context: CanvasRenderingContext2D,
    scale: TimeScale,
    palette: Palette,
    arrows: readonly Arrow[],
    middleOf: (lane: number) => number | null,
): void {
    context.strokeStyle = palette.text;
    context.fillStyle = palette.text;
    context.globalAlpha = 0.75;
    for (const arrow of arrows) {
        const x = toX(scale, arrow.at);
        const to = middleOf(arrow.to);
        if (x < 0 || x > scale.width || to === null) continue;
        const from = arrow.from === null ? to - 9 : middleOf(arrow.from);
        if (from === null) continue;
        const sign = to > from ? 1 : -1;
        context.beginPath();
        context.moveTo(x, from);
        context.lineTo(x, to - sign * 3);
        context.stroke();
        context.beginPath();
        context.moveTo(x, to);
        context.lineTo(x - 3, to - sign * 6);
        context.lineTo(x + 3, to - sign * 6);
        context.fill();
    }
    context.globalAlpha = 1;
}
