import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Clock, Span } from "../times";
import { clamp, zoomed } from "../times";
import { visible } from "../visible";
import { readPalette } from "./colour";
import { type Band, drawBase, drawOver, levelIn, type Stored } from "./draw";
import { type Arrow, AXIS_HEIGHT, type Link, type Mark, placeOf } from "./overlay";
import { Labels } from "./labels";
import { listen } from "./pointer";
import type { TrackName } from "./raster";
import { between, type GroupBy, type Lane, lanesOfRows, rowAt, rowsOf } from "./rows";
import { toTime, type TimeScale } from "./scale";
import { type Fetch, TileStore } from "./tiles";
import { useSize } from "./size";

export interface BandOf extends Band {
    readonly fetch: Fetch;
}

export interface TrackChartProps {
    readonly label: string;
    readonly clock: Clock;
    readonly window: Span;
    readonly lanes: readonly Lane[];
    readonly bands: readonly BandOf[];
    readonly rowHeight: number;
    /** Maximum height of the rows in pixels; more scroll. */
    readonly height: number;
    readonly baseline: Span | null;
    readonly marks: readonly Mark[];
    readonly arrows: readonly Arrow[];
    readonly groupBy?: GroupBy;
    readonly links?: readonly Link[];
    /** Sampling gaps of all threads. */
    readonly stops?: readonly Span[];
    /** The time of the thread dump shown elsewhere. */
    readonly pinned?: number | null;
    /** Lanes highlighted by a selection elsewhere. */
    readonly chosen?: ReadonlySet<number>;
    /** The selected lane: scrolled to, and marked. */
    readonly active: number | null;
    /** Changes with the data behind the tiles. */
    readonly version: string;
    readonly theme: number;
    readonly onWindow: (window: Span, isDone: boolean) => void;
    readonly onAll: () => void;
    /** A box was dragged: its time range and lanes. */
    readonly onBox: (box: { readonly range: Span; readonly lanes: readonly Lane[] } | null) => void;
    readonly onBaseline: (window: Span) => void;
    readonly onItem: (lane: Lane, at: number, track: TrackName) => void;
    /** Follows a link from a point of a lane; returns the time at its target, null without a link. */
    readonly onFollow?: (lane: Lane, at: number) => number | null;
    /** Shows the thread dump at a time. */
    readonly onDump?: (at: number) => void;
    /** The next lock wait or sampling gap of a lane, after or before a time. */
    readonly nextOn?: (lane: Lane, at: number, isBack: boolean) => number | null;
    readonly onCursor?: (at: number) => void;
    readonly onFailure: (error: unknown) => void;
    /** Description of what is under the cursor. */
    readonly describe: (lane: Lane, at: number, values: ReadonlyMap<TrackName, number>) => string;
}

/** Lanes over time, any number at any zoom. */
export function TrackChart(props: TrackChartProps) {
    const { lanes, rowHeight, window } = props;
    const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
    const [top, setTop] = useState(0);
    const [tick, setTick] = useState(0);
    const [cursor, setCursor] = useState<{ readonly at: number; readonly y: number } | null>(null);
    const [range, setRange] = useState<{ readonly span: Span; readonly isBaseline: boolean } | null>(null);
    const [keyed, setKeyed] = useState(0);
    const scroller = useRef<HTMLDivElement>(null);
    const surface = useRef<HTMLDivElement>(null);
    const base = useRef<HTMLCanvasElement>(null);
    const over = useRef<HTMLCanvasElement>(null);
    const [width, ratio] = useSize(surface);
    const laid = useMemo(() => rowsOf(lanes, folded, rowHeight, props.groupBy), [lanes, folded, rowHeight, props.groupBy]);
    const palette = useMemo(readPalette, [props.theme]);
    const height = Math.min(Math.max(laid.height, rowHeight), props.height);
    const scale: TimeScale = { window, width: Math.max(width, 1) };
    const stores = useStores(props, () => setTick((before) => before + 1));
    const laneRows = laid.rows.filter((row) => row.kind === "lane");
    const live = useRef({ scale, laid, top, props });
    live.current = { scale, laid, top, props };

    const seen = between(laid.rows, top - rowHeight, top + height + rowHeight);
    useEffect(() => {
        if (width === 0) return;
        const wanted = lanesOfRows(seen);
        for (const { band, store } of stores) store.want(window, levelIn(band, scale), wanted);
        const frame = requestAnimationFrame(() => {
            if (base.current) drawBase(base.current, { scale, seen, top, height, ratio, palette, stores });
        });
        return () => cancelAnimationFrame(frame);
    }, [window.begin, window.end, width, ratio, top, height, laid, palette, stores, tick]);
    useEffect(() => {
        if (over.current) drawOver(over.current, { ...props, ...extras(props), rows: laid.rows, scale, seen, top, height, ratio, palette, cursor, range });
    });
    useEffect(() => {
        const at = laneRows.findIndex((row) => row.kind === "lane" && row.lane.lane === props.active);
        if (at >= 0) setKeyed(at);
    }, [props.active, laid]);
    useEffect(() => {
        if (cursor) props.onCursor?.(cursor.at);
    }, [cursor?.at]);
    useEffect(() => {
        const row = laid.rows.find((one) => one.kind === "lane" && one.lane.lane === props.active);
        const part = scroller.current;
        if (row && part && (row.top < part.scrollTop || row.top + row.height > part.scrollTop + height)) part.scrollTop = Math.max(row.top - height / 3, 0);
    }, [props.active, laid]);
    useEffect(() => {
        const element = surface.current;
        if (!element) return;
        const laneAt = (y: number) => rowAt(live.current.laid.rows, y - AXIS_HEIGHT + live.current.top);
        return listen(element, {
            scale: () => live.current.scale,
            onHover: (place) => setCursor(place ? { at: toTime(live.current.scale, place.x), y: place.y } : null),
            onClick: (x, y) => {
                setRange(null);
                live.current.props.onBox(null);
                const row = laneAt(y);
                if (row?.kind !== "lane") return;
                const linked = linkAt(live.current, x, y);
                if (linked && (live.current.props.onFollow?.(linked.lane, linked.at) ?? null) !== null) return;
                const inside = y - AXIS_HEIGHT + live.current.top - row.top;
                live.current.props.onItem(row.lane, Math.floor(toTime(live.current.scale, x)), trackAt(live.current.props, inside));
            },
            onRange: (span, [from, to], isDone, isBaseline) => {
                setRange(isDone && isBaseline ? null : { span, isBaseline });
                if (!isDone) return;
                if (isBaseline) return live.current.props.onBaseline(span);
                const inside = between(live.current.laid.rows, from - AXIS_HEIGHT + live.current.top, to - AXIS_HEIGHT + live.current.top);
                live.current.props.onBox({ range: span, lanes: inside.flatMap((row) => (row.kind === "lane" ? [row.lane] : [])) });
            },
            onWindow: (to, isDone) => live.current.props.onWindow(clamp(to, live.current.props.clock.length), isDone),
            onAll: () => live.current.props.onAll(),
        });
    }, []);

    const current = laneRows[Math.min(keyed, laneRows.length - 1)];
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const size = window.end - window.begin;
        const at = cursor?.at ?? (window.begin + window.end) / 2;
        const move = (by: number) => props.onWindow(clamp({ begin: window.begin + by * size, end: window.end + by * size }, props.clock.length), true);
        const zoom = (factor: number) => props.onWindow(clamp(zoomed(window, factor, at), props.clock.length), true);
        const step = (by: number) => {
            const next = Math.min(Math.max(keyed + by, 0), laneRows.length - 1);
            setKeyed(next);
            const row = laneRows[next];
            const part = scroller.current;
            if (row && part) {
                if (row.top < part.scrollTop) part.scrollTop = row.top;
                else if (row.top + row.height > part.scrollTop + height) part.scrollTop = row.top + row.height - height;
                setCursor({ at, y: row.top - part.scrollTop + AXIS_HEIGHT + row.height / 2 });
            }
        };
        const creep = (by: number) => setCursor({ at: Math.min(Math.max(at + by * size, window.begin), window.end), y: cursor?.y ?? 0 });
        const edge = (which: "begin" | "end") => {
            const span = { ...(range?.span ?? window), [which]: Math.round(at) };
            if (span.end > span.begin) {
                setRange({ span, isBaseline: false });
                props.onBox({ range: span, lanes: current?.kind === "lane" ? [current.lane] : [] });
            }
        };
        const jump = (isBack: boolean) => {
            const next = current?.kind === "lane" ? (props.nextOn?.(current.lane, at, isBack) ?? null) : null;
            if (next !== null && current) setCursor({ at: next, y: current.top - top + AXIS_HEIGHT + current.height / 2 });
        };
        const keys: Readonly<Record<string, () => void>> = {
            w: () => zoom(0.6),
            "+": () => zoom(0.6),
            s: () => zoom(1 / 0.6),
            "-": () => zoom(1 / 0.6),
            a: () => move(-0.25),
            // With stacks, `d` shows a thread dump; the arrow and the capital letter still pan to the right.
            d: () => (props.onDump ? props.onDump(Math.floor(at)) : move(0.25)),
            D: () => move(0.25),
            n: () => jump(false),
            N: () => jump(true),
            ArrowLeft: () => move(-0.1),
            ArrowRight: () => move(0.1),
            ArrowUp: () => step(-1),
            ArrowDown: () => step(1),
            ",": () => creep(-0.01),
            ".": () => creep(0.01),
            "[": () => edge("begin"),
            "]": () => edge("end"),
            z: () => range && props.onWindow(range.span, true),
            "0": () => props.onAll(),
            Enter: () => {
                if (current?.kind !== "lane") return;
                const there = props.onFollow?.(current.lane, Math.floor(at)) ?? null;
                if (there !== null) return setCursor({ at: there, y: cursor?.y ?? 0 });
                props.onItem(current.lane, Math.floor(at), trackAt(props, 0));
            },
        };
        const run = keys[event.key];
        if (!run) return;
        event.preventDefault();
        event.stopPropagation();
        run();
    };
    const hovered = cursor ? rowAt(laid.rows, cursor.y - AXIS_HEIGHT + top) : null;
    const description = cursor && hovered?.kind === "lane" ? props.describe(hovered.lane, cursor.at, valuesAt(stores, hovered.lane.lane, cursor.at, scale)) : "";
    return (
        <div class="chart track-chart">
            <div
                class="chart-scroll"
                role="group"
                aria-label={props.label}
                tabIndex={0}
                onKeyDown={onKeyDown}
                ref={scroller}
                style={{ height: `${height + AXIS_HEIGHT}px` }}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}
            >
                <div class="chart-inner" style={{ height: `${Math.max(laid.height, rowHeight) + AXIS_HEIGHT}px` }}>
                    <div class="chart-stick" style={{ height: `${height + AXIS_HEIGHT}px` }}>
                        <Labels rows={seen} top={top} active={props.active} keyed={current?.kind === "lane" ? current.lane.lane : null} chosen={props.chosen ?? NO_LANES} folded={folded} onFold={setFolded} />
                        <div class="chart-surface" ref={surface}>
                            <canvas ref={base} aria-hidden="true" />
                            <canvas ref={over} aria-hidden="true" />
                        </div>
                    </div>
                </div>
            </div>
            <p class="chart-status" aria-live="polite">
                {visible(description) || "\u00a0"}
            </p>
        </div>
    );
}

const NO_LANES: ReadonlySet<number> = new Set();

function extras(props: TrackChartProps) {
    return { links: props.links ?? [], stops: props.stops ?? [], pinned: props.pinned ?? null, chosen: props.chosen ?? NO_LANES };
}

/** The track whose strip is `inside` pixels below the top of a row; else the first. */
function trackAt(props: TrackChartProps, inside: number): TrackName {
    const under = props.bands.find((band) => inside >= band.top - 1 && inside <= band.top + band.height + 1);
    return (under ?? props.bands[0])?.track ?? "states";
}

function valuesAt(stores: readonly Stored[], lane: number, at: number, scale: TimeScale): ReadonlyMap<TrackName, number> {
    return new Map(
        stores.flatMap(({ band, store }) => {
            const value = store.valueAt(levelIn(band, scale), lane, at);
            return value === null ? [] : [[band.track, value] as const];
        }),
    );
}

/** Maximum distance of a click from a link's line, pixels. */
const NEAR = 5;

/** The link at a pixel: its source lane, and a time within it. */
function linkAt(
    { scale, laid, top, props }: { readonly scale: TimeScale; readonly laid: ReturnType<typeof rowsOf>; readonly top: number; readonly props: TrackChartProps },
    x: number,
    y: number,
): { readonly lane: Lane; readonly at: number } | null {
    const places = new Map(laid.rows.flatMap((row) => (row.kind === "lane" ? [[row.lane.lane, row] as const] : [])));
    for (const link of props.links ?? []) {
        const from = places.get(link.from);
        const to = places.get(link.to);
        if (!from || !to) continue;
        const [a, b] = [from, to].map((row) => row.top - top + AXIS_HEIGHT + row.height / 2);
        if (a === undefined || b === undefined || Math.abs(placeOf(scale, link) - x) > NEAR) continue;
        if (y < Math.min(a, b) - NEAR || y > Math.max(a, b) + NEAR) continue;
        return { lane: from.lane, at: (Math.max(link.begin, scale.window.begin) + Math.min(link.end, scale.window.end)) / 2 };
    }
    return null;
}

function useStores(props: TrackChartProps, changed: () => void): readonly Stored[] {
    const call = useRef(changed);
    call.current = changed;
    const fail = useRef(props.onFailure);
    fail.current = props.onFailure;
    const stores = useMemo(
        () => props.bands.map((band) => ({ band, store: new TileStore(band.fetch, () => call.current(), (error) => fail.current(error)) })),
        [props.version, props.bands.map((band) => band.track).join()],
    );
    useEffect(() => () => stores.forEach(({ store }) => store.clear()), [stores]);
    return stores;
}
