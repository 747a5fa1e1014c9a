import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { type Clock, clamp, type Span, timeOfDay, zoomed } from "../times";
import { duration, grouped, ratio } from "../units";
import { visible } from "../visible";
import { css, type Palette, ramp, readPalette } from "./colour";
import { cellAt, type HeatGrid, heatOf, type HeatScale, latencyAt, latencyY } from "./heat_grid";
import { AXIS_HEIGHT, drawAxis, drawRange } from "./overlay";
import { listen } from "./pointer";
import { toTime, toX } from "./scale";
import { useSize } from "./size";

export interface HeatBox {
    readonly range: Span;
    readonly fromNs: number;
    readonly toNs: number;
}

export interface HeatMapProps {
    readonly label: string;
    readonly grid: HeatGrid;
    readonly clock: Clock;
    readonly window: Span;
    readonly weight: "count" | "intensity";
    /** Logarithms of the latencies at the bottom and the top; equal for maps side by side. */
    readonly range: readonly [number, number];
    /** The value that has the darkest colour. */
    readonly most: number;
    readonly height: number;
    readonly baseline: Span | null;
    readonly theme: number;
    readonly isDark: boolean;
    readonly onBox: (box: HeatBox) => void;
    readonly onWindow: (window: Span, isDone: boolean) => void;
    readonly onAll: () => void;
    readonly onBaseline: (window: Span) => void;
}

const LEFT = 58;

/** End times of operations by latency: dark where there were many. */
export function HeatMap(props: HeatMapProps) {
    const { grid, clock, window } = props;
    const surface = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, pixels] = useSize(surface);
    const [place, setPlace] = useState<{ readonly x: number; readonly y: number } | null>(null);
    const [box, setBox] = useState<HeatBox | null>(null);
    const palette = useMemo(readPalette, [props.theme]);
    const colours = useMemo(() => ramp(props.isDark), [props.isDark]);
    const scale: HeatScale = { window, width: Math.max(width, 1), height: props.height, low: props.range[0], high: props.range[1] };
    const live = useRef({ scale, props });
    live.current = { scale, props };
    useEffect(() => {
        if (canvas.current && width > 0) draw(canvas.current, { ...props, scale, pixels, palette, colours, box });
    });
    useEffect(() => {
        const element = surface.current;
        if (!element) return;
        const boxOf = (range: Span, [from, to]: readonly [number, number]): HeatBox => ({
            range,
            fromNs: Math.max(Math.floor(latencyAt(live.current.scale, to - AXIS_HEIGHT)), 0),
            toNs: Math.ceil(latencyAt(live.current.scale, Math.max(from - AXIS_HEIGHT, 0))),
        });
        return listen(element, {
            scale: () => live.current.scale,
            onHover: setPlace,
            onClick: () => setBox(null),
            onRange: (range, rows, isDone, isBaseline) => {
                if (isDone && isBaseline) {
                    setBox(null);
                    live.current.props.onBaseline(range);
                    return;
                }
                const drawn = boxOf(range, rows);
                setBox(drawn);
                if (isDone) live.current.props.onBox(drawn);
            },
            onWindow: (to, isDone) => live.current.props.onWindow(clamp(to, live.current.props.clock.length), isDone),
            onAll: () => live.current.props.onAll(),
        });
    }, []);
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const at = place ?? { x: scale.width / 2, y: AXIS_HEIGHT + props.height / 2 };
        const time = toTime(scale, at.x);
        const size = window.end - window.begin;
        const go = (to: Span) => props.onWindow(clamp(to, clock.length), true);
        const step = (x: number, y: number) =>
            setPlace({ x: Math.min(Math.max(at.x + x, 0), scale.width), y: Math.min(Math.max(at.y + y, AXIS_HEIGHT), AXIS_HEIGHT + props.height - 1) });
        const corner = () => {
            const latency = latencyAt(scale, at.y - AXIS_HEIGHT);
            if (!box || box.range.end > box.range.begin) return setBox({ range: { begin: time, end: time }, fromNs: latency, toNs: latency });
            const drawn = {
                range: { begin: Math.round(Math.min(box.range.begin, time)), end: Math.round(Math.max(box.range.begin, time)) },
                fromNs: Math.floor(Math.min(box.fromNs, latency)),
                toNs: Math.ceil(Math.max(box.fromNs, latency)),
            };
            setBox(drawn);
            props.onBox(drawn);
        };
        const keys: Readonly<Record<string, () => void>> = {
            w: () => go(zoomed(window, 0.6, time)),
            s: () => go(zoomed(window, 1 / 0.6, time)),
            a: () => go({ begin: window.begin - size / 4, end: window.end - size / 4 }),
            d: () => go({ begin: window.begin + size / 4, end: window.end + size / 4 }),
            ArrowLeft: () => step(-12, 0),
            ArrowRight: () => step(12, 0),
            ArrowUp: () => step(0, -8),
            ArrowDown: () => step(0, 8),
            Enter: corner,
            "0": () => props.onAll(),
        };
        const run = keys[event.key];
        if (!run) return;
        event.preventDefault();
        event.stopPropagation();
        run();
    };
    return (
        <div class="chart heat-chart" role="group" aria-label={`heat map: ${props.label}`} tabIndex={0} onKeyDown={onKeyDown}>
            <h2>{visible(props.label)}</h2>
            <div class="heat-frame" style={{ height: `${props.height + AXIS_HEIGHT}px` }}>
                <Latencies scale={scale} />
                <div class="chart-surface" ref={surface} style={{ left: `${LEFT}px` }}>
                    <canvas ref={canvas} aria-hidden="true" />
                </div>
            </div>
            <p class="chart-status" aria-live="polite">
                {place ? describe(grid, clock, toTime(scale, place.x), latencyAt(scale, place.y - AXIS_HEIGHT)) : `${grouped(grid.total)} operations`}
            </p>
        </div>
    );
}

function describe(grid: HeatGrid, clock: Clock, at: number, latency: number): string {
    const cell = cellAt(grid, at, latency);
    const when = timeOfDay(clock, at, grid.step / 10);
    if (!cell) return `${when}, ${duration(latency)}: none`;
    return `${when}, ${duration(cell.from)} to ${duration(cell.to)}: ${grouped(cell.count)} (${ratio(cell.count / Math.max(grid.total, 1))} of all), ${duration(cell.intensity)} in total`;
}

function Latencies({ scale }: { scale: HeatScale }) {
    const steps = [1, 1e3, 1e6, 1e9, 1e12].flatMap((unit) => [1, 10, 100].map((factor) => unit * factor));
    const shown = steps.filter((ns) => Math.log2(ns) >= scale.low && Math.log2(ns) <= scale.high);
    return (
        <div class="heat-axis" aria-hidden="true" style={{ width: `${LEFT}px` }}>
            {shown.map((ns) => (
                <span key={ns} style={{ top: `${latencyY(scale, ns) + AXIS_HEIGHT}px` }}>
                    {duration(ns)}
                </span>
            ))}
        </div>
    );
}

type Drawn = HeatMapProps & {
    readonly scale: HeatScale;
    readonly pixels: number;
    readonly palette: Palette;
    readonly colours: Uint32Array;
    readonly box: HeatBox | null;
};

function draw(canvas: HTMLCanvasElement, drawn: Drawn): void {
    const { scale, pixels, palette, colours, grid, box } = drawn;
    const height = drawn.height + AXIS_HEIGHT;
    canvas.width = Math.max(Math.round(scale.width * pixels), 1);
    canvas.height = Math.round(height * pixels);
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.fillStyle = css(palette.card);
    context.fillRect(0, 0, scale.width, height);
    for (const cell of grid.cells) {
        const left = toX(scale, cell.at);
        const right = toX(scale, cell.at + grid.step);
        if (right < 0 || left > scale.width) continue;
        const top = latencyY(scale, cell.to) + AXIS_HEIGHT;
        const bottom = latencyY(scale, Math.max(cell.from, 1)) + AXIS_HEIGHT;
        const value = drawn.weight === "count" ? cell.count : cell.intensity;
        context.fillStyle = css(colours[heatOf(value, drawn.most, colours.length)] ?? 0);
        // Whole pixels, so that neighbours touch without a gap.
        const x = Math.floor(left);
        const y = Math.floor(top);
        context.fillRect(x, y, Math.max(Math.ceil(right) - x, 2), Math.max(Math.ceil(bottom) - y, 2));
    }
    drawAxis(context, scale, drawn.clock, palette, height);
    if (drawn.baseline) drawRange(context, scale, drawn.baseline, palette.select, height);
    if (box && box.range.end > box.range.begin) {
        const top = latencyY(scale, box.toNs) + AXIS_HEIGHT;
        const bottom = latencyY(scale, box.fromNs) + AXIS_HEIGHT;
        context.strokeStyle = palette.accent;
        context.lineWidth = 2;
        context.strokeRect(toX(scale, box.range.begin), top, toX(scale, box.range.end) - toX(scale, box.range.begin), bottom - top);
    }
}
