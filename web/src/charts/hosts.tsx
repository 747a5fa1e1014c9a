import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Clock, Span } from "../times";
import { shortened, title, visible } from "../visible";
import { css, type Palette, ramp, readPalette } from "./colour";
import { cellOf, type HostCell, type HostGrid, type HostLine, seenRows, shadeOf, valueAt } from "./host_grid";
import { AXIS_HEIGHT, drawAxis, drawRange } from "./overlay";
import { listen } from "./pointer";
import { toTime, type TimeScale, toX } from "./scale";
import { useSize } from "./size";

export interface HostMapProps {
    readonly label: string;
    readonly grid: HostGrid;
    /** Starts with the grid. */
    readonly clock: Clock;
    /** Name of the measure. */
    readonly measure: string;
    readonly shown: (value: number) => string;
    /** Description of a cell; null where there is none. */
    readonly describe: (line: HostLine, cell: HostCell | null, at: number) => string;
    readonly theme: number;
    readonly isDark: boolean;
    readonly onCell: (line: HostLine, cell: HostCell) => void;
    /** A time range of whole columns was dragged. */
    readonly onRange: (range: Span) => void;
}

const ROW_HEIGHT = 18;
/** Visible rows; the others scroll. */
const ROWS_SEEN = 26;
const LABEL_LENGTH = 26;

interface Place {
    readonly row: number;
    readonly column: number;
}

/** One row per host, dark where the value was high. Only visible rows are drawn. */
export function HostMap(props: HostMapProps) {
    const { grid, clock } = props;
    const scroller = useRef<HTMLDivElement>(null);
    const surface = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, pixels] = useSize(surface);
    const [top, setTop] = useState(0);
    const [place, setPlace] = useState<Place | null>(null);
    const [range, setRange] = useState<Span | null>(null);
    const palette = useMemo(readPalette, [props.theme]);
    const colours = useMemo(() => ramp(props.isDark), [props.isDark]);
    const window = { begin: 0, end: grid.bin * grid.columns };
    const scale: TimeScale = { window, width: Math.max(width, 1) };
    const height = Math.min(grid.lines.length, ROWS_SEEN) * ROW_HEIGHT;
    const seen = seenRows(top, height, ROW_HEIGHT, grid.lines.length);
    const placeAt = (x: number, y: number): Place | null => {
        const row = Math.floor((y - AXIS_HEIGHT + top) / ROW_HEIGHT);
        const column = Math.floor(toTime(scale, x) / grid.bin);
        return y < AXIS_HEIGHT || !grid.lines[row] || column < 0 || column >= grid.columns ? null : { row, column };
    };
    const pick = (at: Place | null) => {
        const line = at && grid.lines[at.row];
        const cell = line && cellOf(line, at.column);
        if (line && cell) props.onCell(line, cell);
    };
    const whole = (drawn: Span): Span => ({
        begin: Math.max(Math.floor(drawn.begin / grid.bin), 0) * grid.bin,
        end: Math.min(Math.ceil(drawn.end / grid.bin), grid.columns) * grid.bin,
    });
    const pointer = useRef<{ readonly x: number; readonly y: number } | null>(null);
    const live = useRef({ scale, placeAt, pick, whole, props });
    live.current = { scale, placeAt, pick, whole, props };
    useEffect(() => {
        if (canvas.current && width > 0) draw(canvas.current, { grid, clock, scale, height, pixels, palette, colours, top, seen, place, range });
    });
    // Scrolling moves rows below a resting pointer.
    useEffect(() => {
        if (pointer.current) setPlace(live.current.placeAt(pointer.current.x, pointer.current.y));
    }, [top]);
    useEffect(() => {
        const element = surface.current;
        if (!element) return;
        return listen(element, {
            scale: () => live.current.scale,
            onHover: (at) => {
                pointer.current = at;
                setPlace(at && live.current.placeAt(at.x, at.y));
            },
            onClick: (x, y) => live.current.pick(live.current.placeAt(x, y)),
            onRange: (drawn, _rows, isDone) => {
                setRange(isDone ? null : live.current.whole(drawn));
                if (isDone) live.current.props.onRange(live.current.whole(drawn));
            },
            onWindow: () => undefined,
            onAll: () => undefined,
        });
    }, []);
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const at = place ?? { row: seen[0], column: 0 };
        if (event.key === "Enter") pick(at);
        else {
            const to = stepped(at, event.key, grid);
            if (!to) return;
            pointer.current = null;
            setPlace(to);
            reveal(scroller.current, to.row, height);
        }
        event.preventDefault();
        event.stopPropagation();
    };
    const line = place ? grid.lines[place.row] : undefined;
    const description = line && place ? props.describe(line, cellOf(line, place.column), place.column * grid.bin) : "";
    return (
        <div class="chart host-map">
            <div
                class="chart-scroll"
                role="group"
                aria-label={props.label}
                tabIndex={0}
                ref={scroller}
                style={{ height: `${height + AXIS_HEIGHT}px` }}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                onKeyDown={onKeyDown}
            >
                <div class="chart-inner" style={{ height: `${grid.lines.length * ROW_HEIGHT + AXIS_HEIGHT}px` }}>
                    <div class="chart-stick" style={{ height: `${height + AXIS_HEIGHT}px` }}>
                        <Names lines={grid.lines} seen={seen} top={top} active={place?.row ?? null} />
                        <div class="chart-surface" ref={surface}>
                            <canvas ref={canvas} aria-hidden="true" />
                        </div>
                    </div>
                </div>
            </div>
            <p class="chart-status" aria-live="polite">
                {visible(description) || "\u00a0"}
            </p>
            <Shades grid={grid} colours={colours} measure={props.measure} shown={props.shown} />
        </div>
    );
}

interface NamesProps {
    readonly lines: readonly HostLine[];
    readonly seen: readonly [number, number];
    readonly top: number;
    readonly active: number | null;
}

function Names({ lines, seen, top, active }: NamesProps) {
    return (
        <div class="chart-labels host-names">
            {lines.slice(...seen).map((line, at) => (
                <div
                    key={line.host}
                    class={seen[0] + at === active ? "active" : undefined}
                    title={title(line.host)}
                    style={{ top: `${(seen[0] + at) * ROW_HEIGHT - top + AXIS_HEIGHT}px`, height: `${ROW_HEIGHT}px` }}
                >
                    <bdi>{shortened(visible(line.host), LABEL_LENGTH)}</bdi>
                </div>
            ))}
        </div>
    );
}

/** Labelled positions of the scale: the ends and the middle. */
const SCALE_LABELS = [0, 0.5, 1];
const SHADES = 24;

/** Legend of the shades. */
function Shades({ grid, colours, measure, shown }: { grid: HostGrid; colours: Uint32Array; measure: string; shown: (value: number) => string }) {
    const strip = Array.from({ length: SHADES }, (_, at) => colours[shadeOf(valueAt(at / (SHADES - 1), grid), grid, colours.length)] ?? 0);
    return (
        <p class="shades">
            <span>{measure}:</span>
            {grid.high > 0 && (
                <span class="shade-scale">
                    <span class="shade-strip" aria-hidden="true">
                        {strip.map((colour, at) => (
                            <i key={at} style={{ background: css(colour) }} />
                        ))}
                    </span>
                    <span class="shade-values">
                        {(grid.high > grid.low ? SCALE_LABELS : [1]).map((share) => (
                            <span key={share}>{shown(valueAt(share, grid))}</span>
                        ))}
                    </span>
                </span>
            )}
            {grid.hasUnknown && (
                <span>
                    <i class="swatch colour-unseen" aria-hidden="true" /> unknown
                </span>
            )}
            <span class="quiet">blank: no operations</span>
        </p>
    );
}

/** Rows that PageUp and PageDown move. */
const PAGE_ROWS = 20;

/** The cell that a key moves to; null for other keys. */
function stepped({ row, column }: Place, key: string, grid: HostGrid): Place | null {
    const steps: Readonly<Record<string, readonly [number, number]>> = {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -1],
        ArrowRight: [0, 1],
        PageUp: [-PAGE_ROWS, 0],
        PageDown: [PAGE_ROWS, 0],
        Home: [0, -grid.columns],
        End: [0, grid.columns],
    };
    const step = steps[key];
    if (!step) return null;
    return {
        row: Math.min(Math.max(row + step[0], 0), Math.max(grid.lines.length - 1, 0)),
        column: Math.min(Math.max(column + step[1], 0), grid.columns - 1),
    };
}

function reveal(scroller: HTMLElement | null, row: number, height: number): void {
    if (!scroller) return;
    const [from, to] = [row * ROW_HEIGHT, (row + 1) * ROW_HEIGHT];
    if (from < scroller.scrollTop) scroller.scrollTop = from;
    else if (to > scroller.scrollTop + height) scroller.scrollTop = to - height;
}

interface Drawn {
    readonly grid: HostGrid;
    readonly clock: Clock;
    readonly scale: TimeScale;
    readonly height: number;
    readonly pixels: number;
    readonly palette: Palette;
    readonly colours: Uint32Array;
    readonly top: number;
    readonly seen: readonly [number, number];
    readonly place: Place | null;
    readonly range: Span | null;
}

function draw(canvas: HTMLCanvasElement, drawn: Drawn): void {
    const { grid, scale, pixels, palette, colours, top, seen, place } = drawn;
    const height = drawn.height + AXIS_HEIGHT;
    canvas.width = Math.max(Math.round(scale.width * pixels), 1);
    canvas.height = Math.max(Math.round(height * pixels), 1);
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.fillStyle = css(palette.card);
    context.fillRect(0, 0, scale.width, height);
    drawAxis(context, scale, drawn.clock, palette, height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS_HEIGHT, scale.width, drawn.height);
    context.clip();
    grid.lines.slice(...seen).forEach((line, at) => {
        const y = (seen[0] + at) * ROW_HEIGHT - top + AXIS_HEIGHT;
        for (const cell of line.cells) {
            // Whole pixels, so that neighbours touch without a gap.
            const left = Math.floor(toX(scale, cell.column * grid.bin));
            const width = Math.max(Math.ceil(toX(scale, (cell.column + 1) * grid.bin)) - left, 2);
            const box = [left, y + 1, width, ROW_HEIGHT - 2] as const;
            if (cell.value === null) drawUnknown(context, palette, box);
            else {
                context.fillStyle = css(colours[shadeOf(cell.value, grid, colours.length)] ?? 0);
                context.fillRect(...box);
            }
        }
    });
    if (place) {
        const left = toX(scale, place.column * grid.bin);
        context.strokeStyle = palette.accent;
        context.lineWidth = 2;
        context.strokeRect(left, place.row * ROW_HEIGHT - top + AXIS_HEIGHT, Math.max(toX(scale, (place.column + 1) * grid.bin) - left, 3), ROW_HEIGHT);
    }
    context.restore();
    if (drawn.range) drawRange(context, scale, drawn.range, palette.accent, height);
}

/** Dotted, like everything that was not recorded. */
function drawUnknown(context: CanvasRenderingContext2D, palette: Palette, [left, top, width, height]: readonly [number, number, number, number]): void {
    context.fillStyle = css(palette.unseen);
    for (let x = left + 1; x < left + width; x += 4) {
        for (let y = top + 2; y < top + height; y += 4) context.fillRect(x, y, 1, 1);
    }
}
