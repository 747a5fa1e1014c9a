// Cell values, formatted for display and for copying.
import { toNumber } from "./exact";
import { type Clock, dateTime, sinceBegin, timeOfDay } from "./times";
import type { Cell, Column, Measure, Row } from "./types";
import { bytes, digits, duration, grouped, rate, ratio } from "./units";
import { visible } from "./visible";

export function isNumeric(measure: Measure): boolean {
    return measure !== "text" && measure !== "path" && measure !== "id";
}

/** Display text; empty for unknown values. */
export function shownCell(cell: Cell | undefined, column: Column, clock: Clock): string {
    if (cell === null || cell === undefined) return "";
    if (typeof cell === "boolean") return cell ? "yes" : "no";
    if (typeof cell === "object") return cell.map((item) => shownCell(item, column, clock)).join(", ");
    if (!isNumeric(column.measure)) return visible(String(cell));
    if (column.measure === "time_ns") return clock.isDated ? dateTime(clock, cell) : timeOfDay(clock, sinceBegin(clock, cell));
    const value = toNumber(cell);
    if (Number.isNaN(value)) return visible(String(cell));
    return shownNumber(value, column);
}

function shownNumber(value: number, column: Column): string {
    switch (column.measure) {
        case "duration_ns":
            return duration(value);
        case "bytes":
            return bytes(value);
        case "ratio":
            return ratio(value);
        case "per_second":
            return rate(value);
        case "bytes_per_second":
            return `${bytes(value)}/s`;
        case "count":
            // Kernel ids are names, not quantities.
            return /^(p?pid|tid|fd2?|cpu|port)$/.test(column.name) ? String(value) : grouped(value);
        default:
            return digits(value);
    }
}

/** The exact value, as in machine-readable formats. */
export function exactCell(cell: Cell | undefined): string {
    if (cell === null || cell === undefined) return "";
    return typeof cell === "object" ? cell.map(exactCell).join(",") : String(cell);
}

/** Ascending for sign 1; unknown values sort last in either direction. */
export function compareCells(a: Cell | undefined, b: Cell | undefined, measure: Measure, sign: number): number {
    const isMissing = (cell: Cell | undefined) => cell === null || cell === undefined;
    if (isMissing(a) || isMissing(b)) return Number(isMissing(a)) - Number(isMissing(b));
    if (isNumeric(measure)) {
        // Where the doubles are equal, the exact digits below decide.
        const difference = toNumber(a as number) - toNumber(b as number);
        if (difference !== 0) return sign * difference;
    }
    const [left, right] = [exactCell(a), exactCell(b)];
    return left < right ? -sign : left > right ? sign : 0;
}

/** Tab-separated exact values, for spreadsheets. */
export function toTsv(columns: readonly Column[], rows: readonly Row[]): string {
    const line = (cells: readonly string[]) => cells.map((cell) => cell.replace(/[\t\r\n]/g, " ")).join("\t");
    const lines = rows.map((row) => line(columns.map((column) => visible(exactCell(row[column.name])))));
    return [line(columns.map((column) => column.name)), ...lines, ""].join("\n");
}

/** RFC 4180; a cell that a spreadsheet would read as a formula is marked as text. */
export function toCsv(columns: readonly Column[], rows: readonly Row[]): string {
    const quoted = (cell: string, isText: boolean) => {
        const harmless = isText && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
        return /[",\r\n]/.test(harmless) ? `"${harmless.replace(/"/g, '""')}"` : harmless;
    };
    const lines = rows.map((row) =>
        columns.map((column) => quoted(exactCell(row[column.name]), !isNumeric(column.measure))).join(","),
    );
    return [columns.map((column) => quoted(column.name, false)).join(","), ...lines, ""].join("\r\n");
}
