import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { duration, grouped, ratio } from "../units";
import { visible } from "../visible";
import { css, mixed, type Palette, readPalette } from "./colour";
import { type Box, depthOf, type FlameData, inverted, layout, matchedTime, sandwich, type Tree, treeOf } from "./flame_layout";
import { filtered } from "./flame_filter";
import { useSize } from "./size";

export interface FlameGraphProps {
    readonly data: FlameData;
    readonly theme: number;
    /** Called with the text of the function search. */
    readonly onFunction?: (name: string) => void;
}

const ROW = 18;
const LABEL_LEAST = 32;
type Mode = "callers" | "callees" | "sandwich";

/** Flame graph: time by call path. */
export function FlameGraph({ data, theme }: FlameGraphProps) {
    const [mode, setMode] = useState<Mode>("callers");
    const [search, setSearch] = useState("");
    const [match, setMatch] = useState("");
    const [reject, setReject] = useState("");
    const [focus, setFocus] = useState<readonly Tree[]>([]);
    const [chosen, setChosen] = useState<Box | null>(null);
    const all = useMemo(() => treeOf(data), [data]);
    const wrong = [match, reject].some((text) => !isPattern(text));
    const whole = useMemo(() => (match || reject ? filtered(all, matching(data, match), matching(data, reject)) : all), [all, match, reject]);
    const turned = useMemo(() => (mode === "callees" ? inverted(whole) : whole), [whole, mode]);
    const both = useMemo(() => (mode === "sandwich" && chosen ? sandwich(whole, chosen.tree.frame) : null), [whole, mode, chosen?.tree.frame]);
    useEffect(() => {
        setFocus([]);
        setChosen(null);
        setMode("callers");
    }, [data, match, reject]);
    const matches = useMemo(() => matcher(data, search), [data, search]);
    const found = matches ? matchedTime(whole, matches) : null;
    const shared = { data, theme, matches, total: whole.total, onChoose: setChosen, chosen };
    const choose = (to: Mode) => {
        setFocus([]);
        setMode(to);
    };
    return (
        <section class="chart flame" aria-label="flame graph">
            <header>
                <h2>flame graph</h2>
                <label>
                    <span class="unseen">function</span>
                    <input type="search" placeholder="function" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
                </label>
                <Pattern label="only stacks with" text={match} onText={setMatch} />
                <Pattern label="no stacks with" text={reject} onText={setReject} />
                {wrong && <span class="quiet">not a valid regular expression</span>}
                {found !== null && (
                    <span>
                        {ratio(found / Math.max(whole.total, 1))} ({amount(data, found)})
                    </span>
                )}
                <span role="group" aria-label="direction">
                    {(["callers", "callees", "sandwich"] as const).map((one) => (
                        <button type="button" key={one} aria-pressed={mode === one} disabled={one === "sandwich" && !chosen} onClick={() => choose(one)}>
                            {one === "callers" ? "callers first" : one === "callees" ? "innermost first" : "sandwich"}
                        </button>
                    ))}
                </span>
                {focus.length > 1 && (
                    <button type="button" onClick={() => setFocus([])}>
                        all
                    </button>
                )}
                <span class="quiet">
                    {amount(data, whole.total)}
                    {whole !== all && ` of ${amount(data, all.total)}`}
                    {(data.pruned ?? 0) > 0 && `, ${amount(data, data.pruned ?? 0)} in stacks too small to show`}
                </span>
            </header>
            {both ? (
                <>
                    <Graph {...shared} root={both.callers} focus={[]} onFocus={() => undefined} isUp label="callers" />
                    <Graph {...shared} root={both.callees} focus={[]} onFocus={() => undefined} label="callees" />
                </>
            ) : (
                <Graph {...shared} root={turned} focus={focus} onFocus={setFocus} label={mode === "callees" ? "innermost functions first" : "callers first"} />
            )}
            <p class="chart-status" aria-live="polite">
                {chosen ? describe(data, chosen.tree, whole.total) : "select a function for details; Enter or a second click zooms in"}
            </p>
        </section>
    );
}

function Pattern({ label, text, onText }: { readonly label: string; readonly text: string; readonly onText: (text: string) => void }) {
    return (
        <label>
            <span class="unseen">{label}</span>
            <input type="search" placeholder={`${label} (regex)`} value={text} aria-invalid={!isPattern(text)} onInput={(event) => onText(event.currentTarget.value)} />
        </label>
    );
}

function isPattern(text: string): boolean {
    try {
        return new RegExp(text) instanceof RegExp;
    } catch {
        return false;
    }
}

/** A test for frames whose names match; null without a pattern or with an invalid one. */
function matching(data: FlameData, text: string): ((frame: number) => boolean) | null {
    if (!text || !isPattern(text)) return null;
    const pattern = new RegExp(text);
    const found = new Set(data.frames.flatMap((frame, at) => (pattern.test(frame.name) ? [at] : [])));
    return (frame) => found.has(frame);
}

function matcher(data: FlameData, search: string): ((frame: number) => boolean) | null {
    const text = search.trim().toLowerCase();
    if (!text) return null;
    const found = new Set(data.frames.flatMap((frame, at) => (frame.name.toLowerCase().includes(text) ? [at] : [])));
    return (frame) => found.has(frame);
}

function amount(data: FlameData, value: number): string {
    return data.unit === "ns" ? duration(value) : `${grouped(value)} ${data.unit}`;
}

function describe(data: FlameData, tree: Tree, total: number): string {
    const frame = data.frames[tree.frame];
    const name = frame ? `${visible(frame.name)}${frame.module ? ` in ${visible(frame.module)}` : ""}` : "all";
    const self = tree.self > 0 ? `, self ${amount(data, tree.self)}` : "";
    const base = data.base_total ? `, baseline ${amount(data, tree.base)}` : "";
    return `${name}: ${amount(data, tree.total)} (${ratio(tree.total / Math.max(total, 1))})${self}${base}`;
}

interface GraphProps {
    readonly data: FlameData;
    readonly theme: number;
    readonly root: Tree;
    readonly focus: readonly Tree[];
    readonly total: number;
    readonly matches: ((frame: number) => boolean) | null;
    readonly chosen: Box | null;
    readonly onChoose: (box: Box | null) => void;
    readonly onFocus: (focus: readonly Tree[]) => void;
    /** Draws the root at the bottom. */
    readonly isUp?: boolean;
    readonly label: string;
}

function Graph(props: GraphProps) {
    const { root, focus, chosen, isUp = false } = props;
    const surface = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, pixels] = useSize(surface);
    const palette = useMemo(readPalette, [props.theme]);
    const boxes = useMemo(() => layout(root, focus, Math.max(width, 1)), [root, focus, width]);
    const depth = depthOf(boxes);
    const topOf = (box: Box) => (isUp ? depth - 1 - box.depth : box.depth) * ROW;
    useEffect(() => {
        if (canvas.current && width > 0) draw(canvas.current, { ...props, boxes, depth, width, pixels, palette, topOf });
    });
    const at = (event: MouseEvent): Box | null => {
        const place = (surface.current as HTMLElement).getBoundingClientRect();
        const [x, y] = [event.clientX - place.left, event.clientY - place.top];
        return boxes.find((box) => x >= box.left && x < box.left + box.width && y >= topOf(box) && y < topOf(box) + ROW) ?? null;
    };
    const zoom = (box: Box) => props.onFocus(box.depth === 0 && focus.length <= 1 ? [] : [...box.path, box.tree]);
    const click = (event: MouseEvent) => {
        const box = at(event);
        if (box && chosen?.tree === box.tree) zoom(box);
        props.onChoose(box);
    };
    const onKeyDown = (event: KeyboardEvent) => {
        const here = boxes.find((box) => box.tree === chosen?.tree) ?? boxes[0];
        if (!here) return;
        const parent = here.path[here.path.length - 1];
        const siblings = boxes.filter((box) => box.depth === here.depth && box.path[box.path.length - 1] === parent);
        const place = siblings.indexOf(here);
        const down = isUp ? "ArrowUp" : "ArrowDown";
        const up = isUp ? "ArrowDown" : "ArrowUp";
        const next: Readonly<Record<string, () => Box | undefined>> = {
            [down]: () => boxes.find((box) => box.depth === here.depth + 1 && box.path[box.path.length - 1] === here.tree),
            [up]: () => boxes.find((box) => box.tree === parent),
            ArrowLeft: () => siblings[place - 1],
            ArrowRight: () => siblings[place + 1],
        };
        const find = next[event.key];
        if (find) props.onChoose(find() ?? here);
        else if (event.key === "Enter") zoom(here);
        else if (event.key === "Escape" && focus.length > 0) props.onFocus([]);
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    return (
        <div
            class="chart-surface flame-surface"
            ref={surface}
            role="application"
            aria-label={`flame graph, ${props.label}: arrow keys move between functions`}
            tabIndex={0}
            style={{ height: `${depth * ROW}px` }}
            onClick={click}
            onKeyDown={onKeyDown}
        >
            <canvas ref={canvas} aria-hidden="true" />
        </div>
    );
}

type Drawn = GraphProps & {
    readonly boxes: readonly Box[];
    readonly depth: number;
    readonly width: number;
    readonly pixels: number;
    readonly palette: Palette;
    readonly topOf: (box: Box) => number;
};

function draw(canvas: HTMLCanvasElement, drawn: Drawn): void {
    const { boxes, data, palette, pixels, chosen, matches } = drawn;
    canvas.width = Math.max(Math.round(drawn.width * pixels), 1);
    canvas.height = Math.max(Math.round(drawn.depth * ROW * pixels), 1);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.font = palette.font;
    context.textBaseline = "middle";
    for (const box of boxes) {
        const top = drawn.topOf(box);
        const isMatch = matches !== null && matches(box.tree.frame);
        context.fillStyle = isMatch ? palette.accent : css(colourOf(drawn, box.tree));
        context.globalAlpha = matches !== null && !isMatch ? 0.45 : 1;
        context.fillRect(box.left, top, Math.max(box.width - 0.6, 0.5), ROW - 1);
        if (chosen?.tree === box.tree) {
            context.strokeStyle = palette.text;
            context.lineWidth = 2;
            context.strokeRect(box.left + 1, top + 1, Math.max(box.width - 2.6, 1), ROW - 3);
        }
        if (box.width < LABEL_LEAST) continue;
        const name = box.tree.frame < 0 ? "all" : visible(data.frames[box.tree.frame]?.name ?? "?");
        context.fillStyle = isMatch ? css(palette.card) : palette.text;
        context.fillText(fitting(context, name, box.width - 8), box.left + 4, top + ROW / 2);
    }
    context.globalAlpha = 1;
}

/** Text cut to the width of the box: estimated first, then measured. */
function fitting(context: CanvasRenderingContext2D, text: string, width: number): string {
    let cut = Array.from(text).slice(0, Math.ceil(width / 4));
    let shown = cut.join("");
    while (cut.length > 1 && context.measureText(shown).width > width) {
        cut = cut.slice(0, Math.floor(cut.length * 0.9));
        shown = `${cut.join("")}…`;
    }
    return shown;
}

/** Kernel and user frames differ in colour; with a baseline, growth and shrinkage do. */
function colourOf({ data, palette }: Drawn, tree: Tree): number {
    const weak = (colour: number, share: number) => mixed(palette.card, colour, share);
    if (tree.frame < 0) return weak(palette.asleep, 0.5);
    if (data.base_total) {
        const delta = tree.total / Math.max(data.total, 1) - tree.base / Math.max(data.base_total, 1);
        const strength = Math.min(Math.abs(delta) * 4 + 0.12, 0.75);
        return weak(delta > 0 ? palette.blocked : (palette.series[1] ?? palette.asleep), strength);
    }
    const isKernel = data.frames[tree.frame]?.kind === "kernel";
    // Neighbours differ slightly, so that boxes are visible without borders.
    const shade = 0.42 + ((Math.imul(tree.frame + 1, 0x9e3779b1) >>> 28) / 16) * 0.2;
    return weak(isKernel ? palette.runnable : (palette.series[3] ?? palette.running), shade);
}
