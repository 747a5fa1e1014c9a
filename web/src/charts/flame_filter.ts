// Of a flame graph those stacks that match, and where it tells something else than samples do.
import type { FlameData, Tree } from "./flame_layout";

const ROOT = -1;

/** Stacks with a frame that matches (all, if nothing is asked for) and none that is rejected. */
export function filtered(tree: Tree, match: ((frame: number) => boolean) | null, reject: ((frame: number) => boolean) | null): Tree {
    return kept(tree, { match, reject }, match === null) ?? { ...tree, self: 0, total: 0, base: 0, children: [] };
}

interface Wanted {
    readonly match: ((frame: number) => boolean) | null;
    readonly reject: ((frame: number) => boolean) | null;
}

function kept(tree: Tree, wanted: Wanted, isMatched: boolean): Tree | null {
    const isFrame = tree.frame !== ROOT;
    if (isFrame && wanted.reject?.(tree.frame)) return null;
    const isHit = isMatched || (isFrame && (wanted.match?.(tree.frame) ?? false));
    const children = tree.children.flatMap((child) => kept(child, wanted, isHit) ?? []);
    const sum = (of: readonly Tree[], value: (one: Tree) => number) => of.reduce((all, one) => all + value(one), 0);
    // What is left of a node beside its children is its own, and what was too thin to be told.
    const own = isHit ? tree.total - sum(tree.children, (one) => one.total) : 0;
    const ownBase = isHit ? tree.base - sum(tree.children, (one) => one.base) : 0;
    const total = own + sum(children, (one) => one.total);
    const base = ownBase + sum(children, (one) => one.base);
    if (total <= 0 && base <= 0 && isFrame) return null;
    return { frame: tree.frame, self: isHit ? tree.self : 0, total, base, children };
}

/** Time of each function itself, by name; time without samples counts for the call that it was spent in. */
export function ownShares(data: FlameData): ReadonlyMap<string, number> {
    const times = new Map<string, number>();
    const isMark = (frame: number) => data.frames[frame]?.kind === "mark";
    data.nodes.forEach(([parent, frame, self], at) => {
        if (at === 0 || self <= 0) return;
        const above = data.nodes[parent];
        const of = isMark(frame) && parent > 0 && above ? above[1] : frame;
        if (isMark(of)) return;
        const name = data.frames[of]?.name ?? "";
        times.set(name, (times.get(name) ?? 0) + self);
    });
    return new Map([...times].map(([name, value]) => [name, value / Math.max(data.total, 1)]));
}

export interface Difference {
    readonly name: string;
    readonly samples: number;
    readonly time: number;
}

/** Functions of which samples and time differ by more than this are worth a note. */
const RATIO = 2;
/** Of all; less is no news. */
const SHARE_LEAST = 0.02;
const TOLD = 3;

/** Where samples alone would mislead, the greatest differences first. */
export function differences(time: FlameData, samples: FlameData): readonly Difference[] {
    const [a, b] = [ownShares(time), ownShares(samples)];
    return [...new Set([...a.keys(), ...b.keys()])]
        .map((name) => ({ name, time: a.get(name) ?? 0, samples: b.get(name) ?? 0 }))
        .filter((one) => Math.max(one.time, one.samples) >= SHARE_LEAST && Math.max(one.time, one.samples) > RATIO * Math.min(one.time, one.samples))
        .sort((x, y) => Math.abs(y.time - y.samples) - Math.abs(x.time - x.samples) || (x.name < y.name ? -1 : 1))
        .slice(0, TOLD);
}
