// Chart rows: lanes grouped by process or thread pool.

export interface Lane {
    readonly lane: number;
    readonly name: string;
    readonly tid: number | null;
    readonly pid: number | null;
    readonly process: string | null;
    readonly busy_ns?: number;
}

export type ChartRow =
    | {
          readonly kind: "group";
          readonly key: string;
          readonly label: string;
          readonly count: number;
          readonly top: number;
          readonly height: number;
          /** Lanes summed in the strip of the group; empty without a strip. */
          readonly lanes: readonly number[];
      }
    | { readonly kind: "lane"; readonly lane: Lane; readonly label: string; readonly top: number; readonly height: number };

export const GROUP_HEIGHT = 18;
/** Maximum number of lanes in a strip; larger groups are sampled evenly. */
const SUMMED_MAX = 48;

export type GroupBy = "process" | "pool";

/** Pool of a thread name: `request-handler-3` and `request-handler-4` differ in digits or ids only. */
export function poolOf(name: string): string {
    return name.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, "N").replace(/\d+/g, "N");
}

/** Rows in the order of the lanes. Groups of several threads have a heading that folds them. */
export function rowsOf(
    lanes: readonly Lane[],
    folded: ReadonlySet<string>,
    height: number,
    by: GroupBy = "process",
): { readonly rows: readonly ChartRow[]; readonly height: number } {
    const members = new Map<string, Lane[]>();
    for (const lane of lanes) {
        const key = keyOf(lane, by);
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
            const label = by === "pool" ? poolOf(first.name) : `${first.process ?? first.name} ${first.pid}`;
            const summed = by === "pool" ? spread(group) : [];
            rows.push({ kind: "group", key, label, count: group.length, top, height: GROUP_HEIGHT, lanes: summed });
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

function keyOf(lane: Lane, by: GroupBy): string {
    if (by === "pool" && lane.tid !== null) return `pool-${lane.pid ?? ""}-${poolOf(lane.name)}`;
    return lane.pid === null ? `lane-${lane.lane}` : `pid-${lane.pid}`;
}

function spread(group: readonly Lane[]): readonly number[] {
    const step = Math.max(Math.ceil(group.length / SUMMED_MAX), 1);
    return group.filter((_, at) => at % step === 0).map((lane) => lane.lane);
}

function labelOf(lane: Lane, isMember: boolean): string {
    if (lane.tid === null) return lane.name;
    if (isMember) return `${lane.name} ${lane.tid}`;
    return lane.tid === lane.pid || lane.pid === null ? `${lane.name} ${lane.tid}` : `${lane.name} ${lane.pid}/${lane.tid}`;
}

/** Lanes needed to draw some rows. */
export function lanesOfRows(rows: readonly ChartRow[]): number[] {
    return [...new Set(rows.flatMap((row) => (row.kind === "lane" ? [row.lane.lane] : row.lanes)))];
}

/** Rows between two vertical positions. */
export function between(rows: readonly ChartRow[], from: number, to: number): readonly ChartRow[] {
    return rows.filter((row) => row.top + row.height > from && row.top < to);
}

export function rowAt(rows: readonly ChartRow[], y: number): ChartRow | null {
    return rows.find((row) => y >= row.top && y < row.top + row.height) ?? null;
}
