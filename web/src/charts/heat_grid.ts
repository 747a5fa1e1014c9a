// Cells of a heat map: time by latency.
import { type Exact, toNumber } from "../exact";
import { type Clock, sinceBegin, type Span } from "../times";
import type { AnswerTable } from "../types";

export interface HeatCell {
    readonly at: number;
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly intensity: number;
}

export interface HeatGrid {
    readonly cells: readonly HeatCell[];
    /** Length of a column, ns. */
    readonly step: number;
    /** Lowest and highest latency of any cell. */
    readonly low: number;
    readonly high: number;
    readonly mostCount: number;
    readonly mostIntensity: number;
    readonly total: number;
}

export function readGrid(table: AnswerTable, clock: Clock): HeatGrid {
    const number = (value: unknown) => toNumber((value ?? 0) as Exact);
    const cells = table.rows.map((row) => ({
        at: sinceBegin(clock, (row["time_ns"] ?? 0) as Exact),
        from: number(row["from_ns"]),
        to: number(row["to_ns"]),
        count: number(row["count"]),
        intensity: number(row["intensity_ns"]),
    }));
    return gridOf(cells, stepOf(table, cells));
}

export function gridOf(cells: readonly HeatCell[], step: number): HeatGrid {
    const most = (of: (cell: HeatCell) => number) => cells.reduce((most, cell) => Math.max(most, of(cell)), 0);
    return {
        cells,
        step,
        low: cells.reduce((low, cell) => Math.min(low, cell.from), Number.POSITIVE_INFINITY),
        high: most((cell) => cell.to),
        mostCount: most((cell) => cell.count),
        mostIntensity: most((cell) => cell.intensity),
        total: cells.reduce((sum, cell) => sum + cell.count, 0),
    };
}

/** Column length from the response; without it, the smallest distance between columns. */
function stepOf(table: AnswerTable, cells: readonly HeatCell[]): number {
    const step = table.facts["column_ns"] ?? table.facts["step_ns"];
    if (typeof step === "number" && step > 0) return step;
    const begins = [...new Set(cells.map((cell) => cell.at))].sort((a, b) => a - b);
    return begins.slice(1).reduce((least, at, before) => Math.min(least, at - (begins[before] ?? at)), Number.POSITIVE_INFINITY);
}

export interface HeatScale {
    readonly window: Span;
    readonly width: number;
    readonly height: number;
    /** Base-2 logarithms of the latencies at the bottom and the top. */
    readonly low: number;
    readonly high: number;
}

/** Common latency range of all grids. */
export function latencyRange(grids: readonly HeatGrid[]): readonly [number, number] {
    const low = Math.min(...grids.map((grid) => Math.max(grid.low, 1)), 1e9);
    const high = Math.max(...grids.map((grid) => grid.high), 2);
    return [Math.floor(Math.log2(Math.max(low, 1))), Math.ceil(Math.log2(high))];
}

export function latencyY(scale: HeatScale, ns: number): number {
    const share = (Math.log2(Math.max(ns, 1)) - scale.low) / Math.max(scale.high - scale.low, 1);
    return scale.height * (1 - share);
}

export function latencyAt(scale: HeatScale, y: number): number {
    return 2 ** (scale.low + (1 - y / scale.height) * (scale.high - scale.low));
}

/** Colour of a cell as an index into the ramp: logarithmic, so that one slow call among thousands is visible. */
export function heatOf(value: number, most: number, steps: number): number {
    if (value <= 0 || most <= 0) return 0;
    const share = most <= 1 ? 1 : Math.log1p(value) / Math.log1p(most);
    return Math.max(Math.round(share * (steps - 1)), Math.ceil(steps * 0.12));
}

export function cellAt(grid: HeatGrid, at: number, latency: number): HeatCell | null {
    return grid.cells.find((cell) => at >= cell.at && at < cell.at + grid.step && latency >= cell.from && latency < cell.to) ?? null;
}
