import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { Parameters } from "../api";
import { clock } from "../app";
import { type QueryState, useAnswer } from "../query";
import { shownCell } from "../cells";
import { rowSpan } from "../explainable";
import { choose, chosen } from "../selection";
import { go, setFilter } from "../state";
import { type Span, withMargin } from "../times";
import type { Answer, AnswerTable, Cell, Row } from "../types";
import { visible } from "../visible";
import { Histogram } from "./histogram";
import { Pending, Problem } from "./problem";
import { Table } from "./table";
import { WhyNone } from "./topic_state";

interface Props {
    /** `io`, `block`, … */
    readonly what: string;
    /** `stats`, `top`, … */
    readonly verb: string;
    readonly parameters: Parameters;
    /** Only these tables. */
    readonly only?: (table: AnswerTable) => boolean;
    /** Draws a chart instead of the table, which becomes its alternative. */
    readonly draw?: (table: AnswerTable) => ComponentChildren | null;
    readonly rowsShown?: number;
}

/** The result of a query as in the terminal, in tables and bars. */
export function AnswerView(props: Props) {
    const { what, verb, parameters } = props;
    const query = useAnswer<Answer>("table", { what, view: verb, ...parameters });
    return <AnswerBody {...props} query={query} />;
}

/** The same for a query sent by the caller. */
export function AnswerBody({ query, only, draw, rowsShown }: Omit<Props, "what" | "verb" | "parameters"> & { query: QueryState<Answer> }) {
    if (query.failure) return <Problem failure={query.failure} />;
    if (!query.answer) return <Pending what="Loading…" />;
    const tables = query.answer.tables.filter((table) => only?.(table) ?? true);
    const none = whyNone(query.answer, tables);
    return (
        <div class={query.isPending ? "answer stale" : "answer"}>
            {none ??
                tables.map((table) => (
                    <One key={table.name} table={table} draw={draw} rowsShown={rowsShown} />
                ))}
            <Caveats answer={query.answer} />
        </div>
    );
}

/** Instead of empty tables: none happened, or they were not recorded. */
function whyNone(answer: Answer, tables: readonly AnswerTable[]): ComponentChildren | null {
    const { state, reason, record_with: recordWith, caveats } = answer;
    // Facts have no rows.
    if (tables.some((table) => table.rows.length > 0 || table.form === "facts")) return null;
    if (state && state !== "recorded") return <WhyNone state={state} reason={reason ?? null} recordWith={recordWith ?? null} />;
    return tables.length === 0 && caveats.length === 0 ? <p class="quiet none">no data in this window</p> : null;
}

function One({ table, draw, rowsShown }: { table: AnswerTable; draw?: Props["draw"]; rowsShown?: number | undefined }) {
    const [isTwin, setTwin] = useState(false);
    const drawn = draw?.(table) ?? null;
    const usual = <Usual table={table} rowsShown={rowsShown} />;
    if (drawn === null) return usual;
    return (
        <div class="twins">
            <button type="button" class="twin" aria-pressed={isTwin} onClick={() => setTwin(!isTwin)}>
                {isTwin ? "chart" : "table"}
            </button>
            {isTwin ? usual : drawn}
        </div>
    );
}

function Usual({ table, rowsShown }: { table: AnswerTable; rowsShown?: number | undefined }) {
    if (table.form === "histogram") return <Histogram table={table} />;
    if (table.form === "facts" || table.columns.length === 0) return <Facts table={table} />;
    const enter = (row: Row) => {
        const window = spanOf(row);
        if (window) go({ window: withMargin(window) });
    };
    return (
        <Table
            table={table}
            {...(rowsShown ? { rowsShown } : {})}
            selected={(row) => typeof row["id"] === "string" && row["id"] === chosen.value?.id}
            onSelect={(row) => choose({ id: textOf(row["id"]), row, table })}
            onEnter={enter}
        />
    );
}

function Facts({ table }: { table: AnswerTable }) {
    const facts = Object.entries(table.facts);
    return (
        <section class="facts" aria-label={visible(table.title)}>
            <h2>{visible(table.title)}</h2>
            <dl>
                {facts.map(([key, value]) => (
                    <div key={key}>
                        <dt>{key.replace(/_ns$/, "").replace(/_/g, " ")}</dt>
                        <dd>{factText(key, value)}</dd>
                    </div>
                ))}
            </dl>
        </section>
    );
}

function factText(key: string, value: Cell): string {
    const measure = key.endsWith("_ns") ? "duration_ns" : typeof value === "number" ? "number" : "text";
    return shownCell(value, { name: key, title: key, measure }, clock.value);
}

export function Caveats({ answer }: { answer: Answer }) {
    const { caveats, losses, left_out: leftOut } = answer;
    if (caveats.length === 0 && losses.length === 0) return null;
    return (
        <ul class="caveats">
            {losses.map((loss, at) => (
                <li key={`loss-${at}`}>
                    ! {loss.count ?? "an unknown number of"} events lost in this window ({visible(loss.kind)})
                </li>
            ))}
            {caveats.map((caveat) => (
                <li key={caveat}>{visible(caveat)}</li>
            ))}
            {leftOut?.option === "--waits" && (
                <li key="left-out">
                    <button type="button" class="chip" onClick={() => setFilter("waits", "true")}>
                        include {visible(leftOut.what)}
                    </button>
                </li>
            )}
        </ul>
    );
}

/** Time range of a row with start and end. */
export function spanOf(row: Row): Span | null {
    return rowSpan(clock.value, row);
}

function textOf(cell: Cell | undefined): string | null {
    return typeof cell === "string" ? cell : null;
}
