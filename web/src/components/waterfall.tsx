import type { Parameters } from "../api";
import { clock } from "../app";
import { shownCell } from "../cells";
import type { AnswerTable, Row } from "../types";
import { visible } from "../visible";
import { AnswerView } from "./answer";

/** One request: its phases, and its threads with their states, on a common time scale. */
export function Waterfall({ parameters }: { readonly parameters: Parameters }) {
    const draw = (table: AnswerTable) => (LINES.has(table.name) ? <Lines table={table} /> : null);
    return <AnswerView what="requests" verb="threads" parameters={parameters} draw={draw} />;
}

/** The column with one letter per time step, and the columns that name a line. */
const LINES: ReadonlyMap<string, { readonly letters: string; readonly names: readonly string[] }> = new Map([
    ["phases", { letters: "bar", names: ["phase", "dur_ns"] }],
    ["threads", { letters: "states", names: ["comm", "tid", "received_by", "dur_ns"] }],
]);

const STATES: Readonly<Record<string, readonly [string, string]>> = {
    "=": ["user", "phase"],
    R: ["running", "running"],
    r: ["runnable", "waiting for a CPU"],
    D: ["blocked", "uninterruptible"],
    S: ["asleep", "asleep"],
    T: ["asleep", "stopped"],
    t: ["asleep", "traced"],
};

function Lines({ table }: { readonly table: AnswerTable }) {
    const of = LINES.get(table.name);
    if (!of) return null;
    return (
        <figure class="waterfall">
            <h2>{visible(table.title)}</h2>
            {table.rows.map((row, at) => (
                <Line key={at} name={nameOf(table, row, of.names)} letters={String(row[of.letters] ?? "")} />
            ))}
            {table.rows.length === 0 && <p class="quiet">unknown</p>}
        </figure>
    );
}

function nameOf(table: AnswerTable, row: Row, names: readonly string[]): string {
    const columns = table.columns.filter((column) => names.includes(column.name) && (row[column.name] ?? null) !== null);
    return columns.map((column) => shownCell(row[column.name], column, clock.value)).join(" ");
}

function Line({ name, letters }: { readonly name: string; readonly letters: string }) {
    const runs = runsOf(letters);
    const labels = runs.filter((run) => run.letter !== " ").map((run) => (STATES[run.letter] ?? UNKNOWN)[1]);
    return (
        <div class="waterfall-line">
            <bdi class="waterfall-name">{visible(name)}</bdi>
            <span class="waterfall-bar" role="img" aria-label={labels.join(", ")}>
                {runs.map((run) => (
                    <i key={run.from} {...shown(run, letters.length)} />
                ))}
            </span>
        </div>
    );
}

const UNKNOWN = ["unseen", "unknown"] as const;

function shown(run: Run, length: number) {
    const style = { width: `${(run.count / Math.max(length, 1)) * 100}%` };
    if (run.letter === " ") return { style };
    const [colour, word] = STATES[run.letter] ?? UNKNOWN;
    return { style, class: `colour-${colour}`, title: word };
}

export interface Run {
    readonly letter: string;
    readonly from: number;
    readonly count: number;
}

/** Runs of equal letters. */
export function runsOf(letters: string): readonly Run[] {
    const runs: Run[] = [];
    for (let at = 0; at < letters.length; at++) {
        const letter = letters.charAt(at);
        const last = runs[runs.length - 1];
        if (last && last.letter === letter) runs[runs.length - 1] = { ...last, count: last.count + 1 };
        else runs.push({ letter, from: at, count: 1 });
    }
    return runs;
}
