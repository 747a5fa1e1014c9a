// Filters stacks of a flame graph, and finds functions where time and samples disagree.
import type { FlameData, Tree } from "./flame_layout";

const ROOT = -1;

/** Stacks with a matching frame (all without a pattern) and no rejected one. */
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
    // The rest of a node without its children is self time and pruned stacks.
    const own = isHit ? tree.total - sum(tree.children, (one) => one.total) : 0;
    const ownBase = isHit ? tree.base - sum(tree.children, (one) => one.base) : 0;
    const total = own + sum(children, (one) => one.total);
    const base = ownBase + sum(children, (one) => one.base);
    if (total <= 0 && base <= 0 && isFrame) return null;
    return { frame: tree.frame, self: isHit ? tree.self : 0, total, base, children };
}

/** Self time of each function by name; a sampling gap counts for the call in which it was spent. */
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

/** Functions whose shares of samples and of time differ by more than this factor get a note. */
const RATIO = 2;
/** Minimum share of the total for a note. */
const SHARE_LEAST = 0.02;
const NOTES_MAX = 3;

/** Functions for which samples alone mislead, by decreasing difference. */
export function differences(time: FlameData, samples: FlameData): readonly Difference[] {
    const [a, b] = [ownShares(time), ownShares(samples)];
    return [...new Set([...a.keys(), ...b.keys()])]
        .map((name) => ({ name, time: a.get(name) ?? 0, samples: b.get(name) ?? 0 }))
        .filter((one) => Math.max(one.time, one.samples) >= SHARE_LEAST && Math.max(one.time, one.samples) > RATIO * Math.min(one.time, one.samples))
        .sort((x, y) => Math.abs(y.time - y.samples) - Math.abs(x.time - x.samples) || (x.name < y.name ? -1 : 1))
        .slice(0, NOTES_MAX);
}
