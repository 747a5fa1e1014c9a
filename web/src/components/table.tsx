import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { clock as recorded } from "../app";
import { compareCells, exactCell, isNumeric, shownCell, toCsv, toTsv } from "../cells";
import { copy, download } from "../clipboard";
import type { Clock } from "../times";
import type { AnswerTable, Column, Row } from "../types";
import { plural } from "../units";
import { shortened, title, visible } from "../visible";

const ROW_HEIGHT = 24;
/** Rows drawn above and below the visible part, so that scrolling shows no gaps. */
const OVERSCAN = 12;
const TEXT_LENGTH = 64;
/** Tables with many columns get shorter names. */
const SHORT_LENGTH = 34;
const COLUMNS_MANY = 9;

interface Order {
    readonly column: string;
    readonly sign: 1 | -1;
}

interface Props {
    readonly table: AnswerTable;
    /** Maximum height of the scrolling part, in rows. */
    readonly rowsShown?: number;
    readonly selected?: (row: Row) => boolean;
    readonly onSelect?: (row: Row) => void;
    readonly onEnter?: (row: Row) => void;
    readonly actions?: (row: Row) => ComponentChildren;
    /** Clock of its times, if not the recording's. */
    readonly clock?: Clock;
    /** Shown if there are no rows. */
    readonly none?: string;
}

/** Rows of a result. Only visible rows are drawn. */
export function Table(props: Props) {
    const { table, rowsShown = 18, clock = recorded.value, none = "no data in this window" } = props;
    const [order, setOrder] = useState<Order | null>(null);
    const [top, setTop] = useState(0);
    const [active, setActive] = useState(0);
    const scroller = useRef<HTMLDivElement>(null);
    const rows = useMemo(() => sorted(table, order), [table, order]);
    const columns = useMemo(() => filled(table), [table]);
    const room = columns.length < COLUMNS_MANY ? TEXT_LENGTH : SHORT_LENGTH;
    useEffect(() => setActive((at) => Math.min(at, Math.max(rows.length - 1, 0))), [rows]);

    const first = Math.max(Math.floor(top / ROW_HEIGHT) - OVERSCAN, 0);
    const last = Math.min(first + rowsShown + 2 * OVERSCAN, rows.length);
    const move = (to: number) => {
        const at = Math.min(Math.max(to, 0), rows.length - 1);
        setActive(at);
        const part = scroller.current;
        if (!part) return;
        const inner = part.clientHeight - ROW_HEIGHT;
        if (at * ROW_HEIGHT < part.scrollTop) part.scrollTop = at * ROW_HEIGHT;
        else if ((at + 1) * ROW_HEIGHT > part.scrollTop + inner) part.scrollTop = (at + 1) * ROW_HEIGHT - inner;
        const row = rows[at];
        if (row) props.onSelect?.(row);
    };
    const onKeyDown = (event: KeyboardEvent) => {
        const step = STEPS[event.key];
        const row = rows[active];
        if (step !== undefined) move(Number.isFinite(step) ? active + step : step > 0 ? rows.length - 1 : 0);
        else if (event.key === "Enter" && row && props.onEnter && event.target === scroller.current) props.onEnter(row);
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    const rowId = (at: number) => `${table.name}-row-${at}`;
    return (
        <section class="table" aria-label={visible(table.title || table.name)}>
            <header>
                {table.title && <h2>{visible(table.title)}</h2>}
                <span class="quiet">{plural(rows.length, "row")}</span>
                <Copies table={table} columns={columns} rows={rows} />
            </header>
            <div
                class="scroller"
                ref={scroller}
                role="grid"
                tabIndex={0}
                aria-label={visible(table.title || table.name)}
                aria-rowcount={rows.length + 1}
                aria-activedescendant={rows.length ? rowId(active) : undefined}
                style={{ maxHeight: `${(rowsShown + 1) * ROW_HEIGHT + 12}px` }}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                onKeyDown={onKeyDown}
            >
                <table role="presentation">
                    <thead role="rowgroup">
                        <tr role="row" aria-rowindex={1}>
                            {columns.map((column) => (
                                <Head key={column.name} column={column} order={order} onOrder={setOrder} />
                            ))}
                            {props.actions && <th role="columnheader">actions</th>}
                        </tr>
                    </thead>
                    <tbody role="rowgroup">
                        <Spacer rows={first} />
                        {rows.slice(first, last).map((row, at) => (
                            <tr
                                key={first + at}
                                id={rowId(first + at)}
                                role="row"
                                aria-rowindex={first + at + 2}
                                aria-selected={props.selected?.(row) ?? false}
                                class={first + at === active ? "active" : undefined}
                                onClick={() => move(first + at)}
                                onDblClick={() => props.onEnter?.(row)}
                            >
                                {columns.map((column, place) => (
                                    <Value key={column.name} row={row} column={column} isFirst={place === 0} room={room} clock={clock} />
                                ))}
                                {props.actions && <td role="gridcell">{props.actions(row)}</td>}
                            </tr>
                        ))}
                        <Spacer rows={rows.length - last} />
                    </tbody>
                </table>
                {rows.length === 0 && <p class="quiet none">{none}</p>}
            </div>
            <Footnotes rows={rows} />
        </section>
    );
}

const STEPS: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: 15,
    PageUp: -15,
    Home: -Infinity,
    End: Infinity,
};

function sorted(table: AnswerTable, order: Order | null): readonly Row[] {
    const column = table.columns.find((one) => one.name === order?.column);
    if (!order || !column) return table.rows;
    return [...table.rows].sort((a, b) => compareCells(a[column.name], b[column.name], column.measure, order.sign));
}

/** Columns with at least one value. */
function filled(table: AnswerTable): readonly Column[] {
    if (table.rows.length === 0) return table.columns;
    return table.columns.filter((column) => table.rows.some((row) => (row[column.name] ?? "") !== ""));
}

function Head({ column, order, onOrder }: { column: Column; order: Order | null; onOrder: (order: Order) => void }) {
    const isOrdered = order?.column === column.name;
    const sign = isOrdered ? (order.sign === 1 ? -1 : 1) : isNumeric(column.measure) ? -1 : 1;
    const sorting = isOrdered ? (order.sign === 1 ? "ascending" : "descending") : "none";
    return (
        <th role="columnheader" aria-sort={sorting} class={isNumeric(column.measure) ? "number" : undefined}>
            <button type="button" tabIndex={-1} onClick={() => onOrder({ column: column.name, sign })}>
                {visible(column.title)}
                <span aria-hidden="true">{isOrdered ? (order.sign === 1 ? " ▲" : " ▼") : ""}</span>
            </button>
        </th>
    );
}

interface ValueProps {
    readonly row: Row;
    readonly column: Column;
    readonly isFirst: boolean;
    /** Maximum number of characters. */
    readonly room: number;
    readonly clock: Clock;
}

function Value({ row, column, isFirst, room, clock }: ValueProps) {
    const cell = row[column.name];
    const text = shownCell(cell, column, clock);
    const depth = column.measure === "path" && typeof row["depth"] === "number" ? row["depth"] : 0;
    const marks = isFirst ? `${row["outlier"] === true ? "!" : ""}${row["overlap"] ? "*" : ""}` : "";
    const exact = isNumeric(column.measure) && cell !== null ? exactCell(cell) : text;
    return (
        <td
            role="gridcell"
            class={isNumeric(column.measure) ? "number" : "text"}
            title={title(exact)}
            style={depth ? { paddingLeft: `${Math.min(depth, 24) * 12 + 8}px` } : undefined}
        >
            <bdi>{shortened(text, room)}</bdi>
            {marks && <b class="marks">{marks}</b>}
        </td>
    );
}

function Spacer({ rows }: { rows: number }) {
    return rows > 0 ? <tr aria-hidden="true" style={{ height: `${rows * ROW_HEIGHT}px` }} /> : null;
}

function Copies({ table, columns, rows }: { table: AnswerTable; columns: readonly Column[]; rows: readonly Row[] }) {
    const save = () => download(toCsv(columns, rows), `${table.name}.csv`, "text/csv");
    return (
        <span class="tools">
            <button type="button" onClick={() => void copy(toTsv(columns, rows), "table")}>
                copy
            </button>
            <button type="button" onClick={save}>
                CSV
            </button>
        </span>
    );
}

function Footnotes({ rows }: { rows: readonly Row[] }) {
    const has = (name: string) => rows.some((row) => Boolean(row[name]));
    if (!has("overlap") && !has("outlier")) return null;
    return (
        <p class="quiet notes">
            {has("outlier") && <span>! outlier </span>}
            {has("overlap") && <span>* extends beyond the window</span>}
        </p>
    );
}
