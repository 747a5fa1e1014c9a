// Rows of a chart: lanes below the process they belong to.

export interface Lane {
    readonly lane: number;
    readonly name: string;
    readonly tid: number | null;
    readonly pid: number | null;
    readonly process: string | null;
    readonly busy_ns?: number;
}

export type ChartRow =
    | { readonly kind: "group"; readonly key: string; readonly label: string; readonly count: number; readonly top: number; readonly height: number }
    | { readonly kind: "lane"; readonly lane: Lane; readonly label: string; readonly top: number; readonly height: number };

export const GROUP_HEIGHT = 18;

/** Rows in the order of the lanes. A process with several threads has a heading, by which they are folded away. */
export function rowsOf(lanes: readonly Lane[], folded: ReadonlySet<string>, height: number): { readonly rows: readonly ChartRow[]; readonly height: number } {
    const members = new Map<string, Lane[]>();
    for (const lane of lanes) {
        const key = lane.pid === null ? `lane-${lane.lane}` : `pid-${lane.pid}`;
        const known = members.get(key);
        if (known) known.push(lane);
        else members.set(key, [lane]);
    }
    const rows: ChartRow[] = [];
    let top = 0;
    for (const [key, group] of members) {
        const [first] = group;
        if (!first) continue;
        const isGroup = group.length > 1;
        if (isGroup) {
            const label = `${first.process ?? first.name} ${first.pid}`;
            rows.push({ kind: "group", key, label, count: group.length, top, height: GROUP_HEIGHT });
            top += GROUP_HEIGHT;
            if (folded.has(key)) continue;
        }
        for (const lane of group) {
            rows.push({ kind: "lane", lane, label: labelOf(lane, isGroup), top, height });
            top += height;
        }
    }
    return { rows, height: top };
}

function labelOf(lane: Lane, isMember: boolean): string {
    if (lane.tid === null) return lane.name;
    if (isMember) return `${lane.name} ${lane.tid}`;
    return lane.tid === lane.pid || lane.pid === null ? `${lane.name} ${lane.tid}` : `${lane.name} ${lane.pid}/${lane.tid}`;
}

/** Rows that some pixels of the whole height show. */
export function between(rows: readonly ChartRow[], from: number, to: number): readonly ChartRow[] {
    return rows.filter((row) => row.top + row.height > from && row.top < to);
}

export function rowAt(rows: readonly ChartRow[], y: number): ChartRow | null {
    return rows.find((row) => y >= row.top && y < row.top + row.height) ?? null;
}
