import { useEffect, useMemo, useRef } from "preact/hooks";

import { clamp, type Span } from "../times";
import { css, type Palette, readPalette } from "./colour";
import type { Mark } from "./overlay";
import { toTime, toX } from "./scale";
import { useSize } from "./size";

export interface MiniSeries {
    readonly name: string;
    readonly values: readonly number[];
}

export interface MinimapProps {
    readonly series: readonly MiniSeries[];
    readonly length: number;
    readonly window: Span | null;
    readonly baseline: Span | null;
    readonly marks: readonly Mark[];
    readonly theme: number;
    readonly onWindow: (window: Span | null, isDone: boolean) => void;
}

const HEIGHT = 44;
/** Distance at which an edge can be grabbed, pixels. */
const NEAR = 7;

type Grip = "begin" | "end" | "all" | "new";

/** Overview of the whole recording, with the window. */
export function Minimap(props: MinimapProps) {
    const surface = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, pixels] = useSize(surface);
    const palette = useMemo(readPalette, [props.theme]);
    const live = useRef({ props, width });
    live.current = { props, width };
    useEffect(() => {
        if (canvas.current && width > 0) draw(canvas.current, props, width, pixels, palette);
    });
    useEffect(() => (surface.current ? grip(surface.current, () => live.current) : undefined), []);
    const onKeyDown = (event: KeyboardEvent) => {
        const shown = props.window ?? { begin: 0, end: props.length };
        const size = shown.end - shown.begin;
        const by = { ArrowLeft: -0.25, ArrowRight: 0.25, PageUp: -1, PageDown: 1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        props.onWindow(clamp({ begin: shown.begin + by * size, end: shown.end + by * size }, props.length), true);
    };
    const shown = props.window ?? { begin: 0, end: props.length };
    const percent = Math.round(((shown.begin + shown.end) / 2 / Math.max(props.length, 1)) * 100);
    return (
        <div
            class="minimap"
            ref={surface}
            role="slider"
            aria-label="window within the recording"
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={percent}
            tabIndex={0}
            onKeyDown={onKeyDown}
        >
            <canvas ref={canvas} aria-hidden="true" />
        </div>
    );
}

function draw(canvas: HTMLCanvasElement, props: MinimapProps, width: number, pixels: number, palette: Palette): void {
    canvas.width = Math.round(width * pixels);
    canvas.height = Math.round(HEIGHT * pixels);
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.fillStyle = css(palette.card);
    context.fillRect(0, 0, width, HEIGHT);
    const colours = [palette.running, palette.blocked, palette.series[1] ?? palette.asleep];
    const band = (HEIGHT - 4) / Math.max(props.series.length, 1);
    props.series.forEach((series, at) => {
        const most = Math.max(...series.values, 1e-12);
        const step = width / Math.max(series.values.length, 1);
        const foot = 2 + (at + 1) * band;
        context.fillStyle = css(colours[at % colours.length] ?? palette.asleep);
        series.values.forEach((value, place) => {
            if (value <= 0) return;
            const height = Math.max((value / most) * (band - 2), 1);
            context.fillRect(place * step, foot - height, Math.max(step, 1), height);
        });
    });
    const scale = { window: { begin: 0, end: props.length }, width };
    if (props.baseline) {
        context.fillStyle = props.theme ? palette.select : palette.select;
        context.globalAlpha = 0.5;
        context.fillRect(toX(scale, props.baseline.begin), 0, Math.max(toX(scale, props.baseline.end) - toX(scale, props.baseline.begin), 2), HEIGHT);
        context.globalAlpha = 1;
    }
    for (const mark of props.marks) {
        context.fillStyle = mark.kind === "finding" ? css(palette.blocked) : palette.accent;
        context.fillRect(toX(scale, mark.at) - 1, 0, 2, 8);
    }
    if (!props.window) return;
    const left = toX(scale, props.window.begin);
    const right = Math.max(toX(scale, props.window.end), left + 2);
    context.fillStyle = css(palette.back);
    context.globalAlpha = 0.7;
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, width - right, HEIGHT);
    context.globalAlpha = 1;
    context.fillStyle = palette.accent;
    context.fillRect(left - 1, 0, 2, HEIGHT);
    context.fillRect(right - 1, 0, 2, HEIGHT);
}

interface Live {
    readonly props: MinimapProps;
    readonly width: number;
}

/** Dragging an edge moves it, inside the window moves the window, outside draws a new one; a click centres it. */
function grip(element: HTMLElement, live: () => Live): () => void {
    let held: { grip: Grip; x: number; window: Span } | null = null;
    const scaleOf = () => ({ window: { begin: 0, end: live().props.length }, width: Math.max(live().width, 1) });
    const xOf = (event: PointerEvent) => event.clientX - element.getBoundingClientRect().left;
    const at = (x: number) => Math.min(Math.max(toTime(scaleOf(), x), 0), live().props.length);
    const down = (event: PointerEvent) => {
        const x = xOf(event);
        const window = live().props.window;
        const near = (ns: number) => Math.abs(toX(scaleOf(), ns) - x) <= NEAR;
        const inside = window && x > toX(scaleOf(), window.begin) && x < toX(scaleOf(), window.end);
        const kind: Grip = !window ? "new" : near(window.begin) ? "begin" : near(window.end) ? "end" : inside ? "all" : "new";
        held = { grip: kind, x, window: window ?? { begin: 0, end: live().props.length } };
        element.setPointerCapture(event.pointerId);
    };
    const result = (x: number): Span | null => {
        if (!held) return null;
        const { grip, window } = held;
        const moved = at(x) - at(held.x);
        const ends = grip === "begin" ? [at(x), window.end] : grip === "end" ? [window.begin, at(x)] : grip === "all" ? [window.begin + moved, window.end + moved] : [at(held.x), at(x)];
        const [begin = 0, end = 0] = ends.sort((a, b) => a - b);
        return clamp({ begin, end }, live().props.length);
    };
    const move = (event: PointerEvent) => {
        if (held && Math.abs(xOf(event) - held.x) > 2) live().props.onWindow(result(xOf(event)), false);
    };
    const up = (event: PointerEvent) => {
        if (!held) return;
        const x = xOf(event);
        if (Math.abs(x - held.x) > 2) live().props.onWindow(result(x), true);
        else if (held.grip === "new" && live().props.window) {
            const half = (held.window.end - held.window.begin) / 2;
            live().props.onWindow(clamp({ begin: at(x) - half, end: at(x) + half }, live().props.length), true);
        }
        held = null;
    };
    const all = () => live().props.onWindow(null, true);
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("dblclick", all);
    return () => {
        element.removeEventListener("pointerdown", down);
        element.removeEventListener("pointermove", move);
        element.removeEventListener("pointerup", up);
        element.removeEventListener("dblclick", all);
    };
}
