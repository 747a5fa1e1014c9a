// Cells of the hosts-by-time map, and the order of hosts.
import { type Exact, toBig, toNumber } from "../exact";
import type { AnswerTable, Row } from "../types";

export interface HostCell {
    readonly column: number;
    /** Null where the duration of the operations is unknown. */
    readonly value: number | null;
    readonly row: Row;
}

export interface HostLine {
    readonly host: string;
    /** In order of time. */
    readonly cells: readonly HostCell[];
    /** Its highest value, 0 without any. */
    readonly worst: number;
}

export interface HostGrid {
    readonly lines: readonly HostLine[];
    /** Start of the first column, ns since 1970. */
    readonly begin: bigint;
    /** Length of a column, ns. */
    readonly bin: number;
    readonly columns: number;
    /** Lowest value above zero, and the highest. */
    readonly low: number;
    readonly high: number;
    readonly hasUnknown: boolean;
}

export type HostOrder = "worst" | "name";

export interface GridOf {
    /** Column of the response that determines the colours. */
    readonly measure: string;
    readonly order: HostOrder;
    /** Length of a cell, ns. */
    readonly bin: bigint;
    /** Time range of the map, ns since 1970. */
    readonly begin: bigint;
    readonly end: bigint;
}

export function readHosts(table: AnswerTable, { measure, order, bin, begin, end }: GridOf): HostGrid {
    const first = floorTo(begin, bin);
    const columns = Math.max(Number((floorTo(end - 1n, bin) - first) / bin) + 1, 1);
    const found = new Map<string, HostCell[]>();
    let [low, high, hasUnknown] = [Number.POSITIVE_INFINITY, 0, false];
    for (const row of table.rows) {
        const { host, ts } = row;
        if (typeof host !== "string" || (typeof ts !== "number" && typeof ts !== "string")) continue;
        const column = Number((floorTo(toBig(ts as Exact), bin) - first) / bin);
        if (column < 0 || column >= columns) continue;
        const cell = row[measure];
        const value = typeof cell === "number" || typeof cell === "string" ? toNumber(cell) : null;
        if (value === null) hasUnknown = true;
        else {
            if (value > 0) low = Math.min(low, value);
            high = Math.max(high, value);
        }
        const cells = found.get(host) ?? [];
        cells.push({ column, value, row });
        found.set(host, cells);
    }
    const lines = [...found].map(([host, cells]) => ({
        host,
        cells: cells.sort((a, b) => a.column - b.column),
        worst: cells.reduce((most, cell) => Math.max(most, cell.value ?? 0), 0),
    }));
    const byName = (a: HostLine, b: HostLine) => a.host.localeCompare(b.host, "en", { numeric: true });
    lines.sort((a, b) => (order === "worst" ? b.worst - a.worst : 0) || byName(a, b));
    return { lines, begin: first, bin: Number(bin), columns, low: Math.min(low, high), high, hasUnknown };
}

function floorTo(ns: bigint, step: bigint): bigint {
    return ns - (((ns % step) + step) % step);
}

/** Index of a value among `steps` colours: logarithmic between the lowest and the highest value. */
export function shadeOf(value: number, grid: HostGrid, steps: number): number {
    if (value <= 0 || grid.high <= 0) return 0;
    // The first shades are hardly distinguishable from the background.
    const least = Math.ceil(steps * 0.12);
    if (grid.high <= grid.low) return steps - 1;
    const share = Math.log(value / grid.low) / Math.log(grid.high / grid.low);
    return Math.min(Math.max(Math.round(least + share * (steps - 1 - least)), least), steps - 1);
}

/** The value at a position of the scale, 0 to 1. */
export function valueAt(share: number, grid: HostGrid): number {
    return grid.high <= grid.low ? grid.high : grid.low * (grid.high / grid.low) ** share;
}

export function cellOf(line: HostLine, column: number): HostCell | null {
    let [from, to] = [0, line.cells.length];
    while (from < to) {
        const middle = (from + to) >> 1;
        if ((line.cells[middle]?.column ?? 0) < column) from = middle + 1;
        else to = middle;
    }
    const found = line.cells[from];
    return found?.column === column ? found : null;
}

/** Visible rows of `count`, including partly visible ones. */
export function seenRows(top: number, height: number, rowHeight: number, count: number): readonly [number, number] {
    const first = Math.min(Math.max(Math.floor(top / rowHeight), 0), count);
    return [first, Math.min(Math.ceil((top + height) / rowHeight), count)];
}
