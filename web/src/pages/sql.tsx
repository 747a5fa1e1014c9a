import { useRef, useState } from "preact/hooks";

import { recording } from "../app";
import { useAnswer } from "../query";
import { Pending, Problem } from "../components/problem";
import { Table } from "../components/table";
import { setOption, view } from "../state";
import type { AnswerTable, Cell, Column, Measure } from "../types";
import { visible } from "../visible";

interface Result {
    readonly columns: readonly { readonly name: string; readonly type: string }[];
    readonly rows: readonly (readonly Cell[])[];
    readonly cut: boolean;
}

const FIRST = "SELECT comm, count(*) AS calls, max(dur) AS longest_ns\nFROM io\nGROUP BY comm\nORDER BY longest_ns DESC\nLIMIT 20";
const KEPT = "whyslow.sql";

/** SQL queries on the recording, with DuckDB. */
export function SqlPage() {
    const sql = recording.value?.sql;
    const query = view.value.options["q"] ?? "";
    const [text, setText] = useState(query || FIRST);
    const field = useRef<HTMLTextAreaElement>(null);
    if (sql && !sql.available) return <Missing hint={sql.hint} />;
    const run = () => {
        keep(text);
        setOption("q", text);
    };
    return (
        <section class="sql">
            <label for="sql">SQL on the tables of the recording (Ctrl+Enter to run)</label>
            <textarea
                id="sql"
                ref={field}
                value={text}
                rows={7}
                spellcheck={false}
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
                    event.preventDefault();
                    run();
                }}
            />
            <p class="actions">
                <button type="button" class="primary" onClick={run}>
                    run
                </button>
                <Earlier onChoose={setText} />
            </p>
            {query && <Rows query={query} />}
            <Schema />
        </section>
    );
}

function Rows({ query }: { query: string }) {
    const { answer, failure, isPending } = useAnswer<Result>("sql", { q: query });
    if (failure) return <Problem failure={failure} />;
    if (!answer) return <Pending what="Running the query…" />;
    return (
        <div class={isPending ? "stale" : undefined}>
            {answer.cut && <p class="caveats">only the first {answer.rows.length} rows are shown</p>}
            <Table table={tableOf("result", answer)} rowsShown={24} />
        </div>
    );
}

function Schema() {
    const query = useAnswer<Result>("sql", {
        q: "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY table_name, ordinal_position",
    });
    if (!query.answer) return null;
    return (
        <details>
            <summary>tables and columns</summary>
            <Table table={tableOf("tables and columns", query.answer)} rowsShown={14} />
        </details>
    );
}

function tableOf(name: string, result: Result): AnswerTable {
    const columns: Column[] = result.columns.map(({ name, type }) => ({ name, title: name, measure: measureOf(name, type) }));
    const rows = result.rows.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, row[at] ?? null])));
    return { name: name.replace(/ /g, "_"), title: name, form: "table", columns, rows, facts: {} };
}

/** Derived from the column names of our views; other columns are shown as they are. */
function measureOf(name: string, type: string): Measure {
    const isNumber = /INT|DOUBLE|DECIMAL|FLOAT|HUGE/i.test(type);
    if (!isNumber) return "text";
    if (/(^|_)ts(_|$)/.test(name)) return "time_ns";
    if (/(^|_)dur(_|$)|_ns$/.test(name)) return "duration_ns";
    return /bytes/.test(name) ? "bytes" : "number";
}

function Missing({ hint }: { hint: string | undefined }) {
    return (
        <article class="card">
            <p class="verdict">SQL unavailable: the duckdb command line is not installed on the server.</p>
            <p>
                Install it there and restart the server: <code>{visible(hint ?? "pip install duckdb-cli")}</code>. All other pages work
                without it.
            </p>
        </article>
    );
}

const EARLIER_MAX = 20;

function earlier(): string[] {
    try {
        const kept: unknown = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
        return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === "string") : [];
    } catch {
        return [];
    }
}

function keep(text: string): void {
    const all = [text, ...earlier().filter((one) => one !== text)].slice(0, EARLIER_MAX);
    sessionStorage.setItem(KEPT, JSON.stringify(all));
}

function Earlier({ onChoose }: { onChoose: (text: string) => void }) {
    const all = earlier();
    if (all.length === 0) return null;
    return (
        <select aria-label="previous statements" onChange={(event) => event.currentTarget.value && onChoose(event.currentTarget.value)}>
            <option value="">previous…</option>
            {all.map((text) => (
                <option value={text} key={text}>
                    {text.replace(/\s+/g, " ").slice(0, 90)}
                </option>
            ))}
        </select>
    );
}
