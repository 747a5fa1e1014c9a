// Stacks as a tree: layout, search, inversion.
export interface FlameFrame {
    readonly name: string;
    readonly module: string | null;
    readonly kind: string;
}

/** parent, frame, self, total, and self and total of the baseline. */
export type FlameNode = readonly [number, number, number, number, number?, number?];

export interface FlameData {
    readonly unit: string;
    readonly total: number;
    readonly base_total?: number | null;
    readonly nodes: readonly FlameNode[];
    readonly frames: readonly FlameFrame[];
    readonly pruned?: number;
}

export interface Tree {
    readonly frame: number;
    readonly self: number;
    readonly total: number;
    readonly base: number;
    readonly children: readonly Tree[];
}

interface Growing {
    frame: number;
    self: number;
    total: number;
    base: number;
    children: Map<number, Growing>;
}

const ROOT = -1;

function grow(frame: number): Growing {
    return { frame, self: 0, total: 0, base: 0, children: new Map() };
}

function child(of: Growing, frame: number): Growing {
    const known = of.children.get(frame);
    if (known) return known;
    const made = grow(frame);
    of.children.set(frame, made);
    return made;
}

/** Sorted by decreasing total, ties by frame number. */
function grown(from: Growing): Tree {
    const children = [...from.children.values()].map(grown).sort((a, b) => b.total - a.total || a.frame - b.frame);
    return { frame: from.frame, self: from.self, total: from.total, base: from.base, children };
}

/** The tree as received: callers above. */
export function treeOf(data: FlameData): Tree {
    const all = data.nodes.map(([, frame, self, total, , base]) => ({ ...grow(frame), self, total, base: base ?? 0 }));
    const [root] = all;
    if (!root) return { frame: ROOT, self: 0, total: 0, base: 0, children: [] };
    root.frame = ROOT;
    data.nodes.forEach(([parent], at) => {
        const node = all[at];
        const above = all[parent];
        // A parent precedes its children; anything else would be a cycle.
        if (at > 0 && node && above && parent < at) above.children.set(at, node);
    });
    return grown(root);
}

/** Innermost functions first, their callers below. */
export function inverted(tree: Tree): Tree {
    const root = grow(ROOT);
    root.total = tree.total;
    root.base = tree.base;
    const walk = (node: Tree, above: readonly number[]) => {
        const path = node.frame === ROOT ? above : [...above, node.frame];
        if (node.self > 0) {
            let at = root;
            for (let depth = path.length - 1; depth >= 0; depth -= 1) {
                at = child(at, path[depth] ?? ROOT);
                at.total += node.self;
                if (depth === 0) at.self += node.self;
            }
        }
        for (const below of node.children) walk(below, path);
    };
    walk(tree, []);
    return grown(root);
}

/** All callers and all callees of a function; of nested calls the outermost counts. */
export function sandwich(tree: Tree, frame: number): { readonly callers: Tree; readonly callees: Tree } {
    const callers = grow(frame);
    const callees = grow(frame);
    const merge = (into: Growing, from: Tree) => {
        into.self += from.self;
        into.total += from.total;
        into.base += from.base;
        for (const below of from.children) merge(child(into, below.frame), below);
    };
    const walk = (node: Tree, above: readonly number[]) => {
        if (node.frame === frame) {
            merge(callees, node);
            callers.total += node.total;
            callers.base += node.base;
            let at = callers;
            for (let depth = above.length - 1; depth >= 0; depth -= 1) {
                at = child(at, above[depth] ?? ROOT);
                at.total += node.total;
                at.base += node.base;
            }
            return;
        }
        const path = node.frame === ROOT ? above : [...above, node.frame];
        for (const below of node.children) walk(below, path);
    };
    walk(tree, []);
    return { callers: grown(callers), callees: grown(callees) };
}

export interface Box {
    readonly tree: Tree;
    readonly path: readonly Tree[];
    readonly depth: number;
    readonly left: number;
    readonly width: number;
}

/** Boxes at least `least` pixels wide; frames above the focus span the full width. */
export function layout(root: Tree, focus: readonly Tree[], width: number, least = 0.6): readonly Box[] {
    const boxes: Box[] = [];
    const path: Tree[] = [];
    focus.forEach((tree, depth) => {
        boxes.push({ tree, path: [...path], depth, left: 0, width });
        path.push(tree);
    });
    const top = focus[focus.length - 1] ?? root;
    if (focus.length === 0) {
        boxes.push({ tree: root, path: [], depth: 0, left: 0, width });
        path.push(root);
    }
    const scale = width / Math.max(top.total, 1);
    const place = (of: Tree, above: readonly Tree[], left: number) => {
        let x = left;
        for (const below of of.children) {
            const wide = below.total * scale;
            if (wide >= least) {
                boxes.push({ tree: below, path: above, depth: above.length, left: x, width: wide });
                place(below, [...above, below], x);
            }
            x += wide;
        }
    };
    place(top, path, 0);
    return boxes;
}

/** Time in matching functions, without counting nested matches twice. */
export function matchedTime(tree: Tree, matches: (frame: number) => boolean): number {
    if (tree.frame !== ROOT && matches(tree.frame)) return tree.total;
    return tree.children.reduce((sum, below) => sum + matchedTime(below, matches), 0);
}

export function depthOf(boxes: readonly Box[]): number {
    return boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);
}
