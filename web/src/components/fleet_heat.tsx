import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Parameters } from "../api";
import { type HostCell, HostMap, type HostLine, readHosts } from "../charts/index";
import { binFor, CELLS_MAX, exactOf, LAKE_CLOCK, leadOf, parseLength, type Range, rangeOf, rangeText } from "../fleet";
import { choices, chosenBin, fleetChosen, useFleet } from "../lake";
import { setOption, view } from "../state";
import { theme } from "../theme";
import { dateTime } from "../times";
import type { Answer, AnswerTable, Row } from "../types";
import { duration, grouped, plural } from "../units";
import { AnswerNotes } from "./fleet_answer";
import { Pending, Problem } from "./problem";
import { Table } from "./table";

interface Measure {
    readonly column: string;
    readonly title: string;
    readonly shown: (value: number) => string;
}

const whole = (value: number) => grouped(Math.round(value));
const MEASURES: readonly Measure[] = [
    { column: "dur_p99_ns", title: "99th percentile", shown: duration },
    { column: "dur_p50_ns", title: "median", shown: duration },
    { column: "dur_max_ns", title: "longest", shown: duration },
    { column: "dur_total_ns", title: "total time", shown: duration },
    { column: "operations", title: "operations", shown: whole },
];

interface Props {
    readonly parameters: Parameters;
    /** Shown if there are no rows. */
    readonly none: string;
}

/** Hosts by time. The cell length depends on the time range of the recordings. */
export function FleetHeat({ parameters, none }: Props) {
    const { hosts, cluster, window } = parameters;
    const known = useFleet<Answer>({ query: "hosts", hosts, cluster, window });
    const listing = known.answer;
    const wanted = windowOf(listing);
    const rows = listing?.tables[0]?.rows ?? [];
    // There may be more hosts than rows in the response.
    const count = listing?.tables[0]?.facts["hosts"];
    const all = typeof count === "number" ? count : rows.length;
    const range = useMemo(() => rangeOf(rows, wanted), [listing]);
    const bin = parameters["bin"] ?? (range ? `${binFor(range.end - range.begin, all)}s` : undefined);
    useEffect(() => {
        chosenBin.value = bin === undefined ? null : String(bin);
    }, [bin]);
    const isReady = range !== null && !known.isPending;
    const heat = useFleet<Answer>(isReady ? { ...parameters, bin } : null);
    // While a request is in flight, the previous map stays, with its own range and cells.
    const last = useRef<MapOf | null>(null);
    const now = heat.answer?.tables[0];
    if (range && now && isReady && !heat.isPending && last.current?.table !== now) last.current = mapOf(now, range, all, String(bin));
    const map = last.current;
    if (known.failure) return <Problem failure={known.failure} />;
    if (!listing) return <Pending what="Loading hosts…" />;
    if (!range) return <p class="quiet none">{known.isPending ? "Loading…" : `${none}: no recordings of these hosts and times were pushed`}</p>;
    if (heat.failure) return <Problem failure={heat.failure} />;
    if (!map) return <Pending what="Computing the heat map…" />;
    return (
        <div class={known.isPending || heat.isPending ? "answer stale" : "answer"}>
            <Maps map={map} none={none} />
            {heat.answer && <AnswerNotes answer={heat.answer} />}
        </div>
    );
}

function windowOf(answer: Answer | null): Range | null {
    const { begin_ns, end_ns } = answer?.window ?? {};
    const [begin, end] = [exactOf(begin_ns), exactOf(end_ns)];
    return begin !== null && end !== null ? { begin, end } : null;
}

interface MapOf {
    readonly table: AnswerTable;
    readonly range: Range;
    /** Hosts with recordings in that range. */
    readonly hosts: number;
    /** Length of a cell, ns. */
    readonly bin: bigint;
}

/** The host list may be truncated; cells outside its range then extend the range. */
function mapOf(table: AnswerTable, known: Range, hosts: number, binText: string): MapOf {
    const bin = binOf(table.rows, binText, known);
    const range = table.rows.reduce<Range>((whole, row) => {
        const ts = exactOf(row["ts"]);
        if (ts === null) return whole;
        return { begin: ts + bin <= whole.begin ? ts : whole.begin, end: ts >= whole.end ? ts + bin : whole.end };
    }, known);
    return { table, range, hosts, bin };
}

function Maps({ map, none }: { map: MapOf; none: string }) {
    const { table, range, hosts, bin } = map;
    const [isTable, setTable] = useState(false);
    const { options } = view.value;
    const measure = MEASURES.find((one) => one.column === options["colour"]) ?? MEASURES[0];
    const order = options["order"] === "name" ? "name" : "worst";
    const column = measure?.column ?? "";
    const grid = useMemo(() => readHosts(table, { measure: column, order, bin, ...range }), [table, column, order, bin, range]);
    const clock = useMemo(() => ({ ...LAKE_CLOCK, begin: grid.begin }), [grid]);
    if (!measure) return null;
    const without = hosts - grid.lines.length;
    const pick = (_line: HostLine, cell: HostCell) => {
        const lead = leadOf(cell.row, bin);
        fleetChosen.value = { row: cell.row, table, lead };
        if (lead?.when) choices({ tab: "slowest", hosts: lead.host, when: rangeText(lead.when) });
    };
    const describe = (line: HostLine, cell: HostCell | null, at: number) => {
        const when = dateTime(clock, String(clock.begin + BigInt(at)));
        if (!cell) return `${line.host}, ${when}: no operations`;
        const all = MEASURES.map((one) => `${one.title} ${valueText(cell.row, one)}`);
        return `${line.host}, ${when}: ${all.join(", ")}`;
    };
    return (
        <section class="fleet-heat" aria-label="hosts by time">
            <p class="actions">
                <label>
                    colour{" "}
                    <select value={column} onChange={(event) => setOption("colour", event.currentTarget.value)}>
                        {MEASURES.map((one) => (
                            <option key={one.column} value={one.column}>
                                {one.title}
                            </option>
                        ))}
                    </select>
                </label>
                <span role="group" aria-label="order of hosts">
                    <button type="button" aria-pressed={order === "worst"} onClick={() => setOption("order", null)}>
                        worst first
                    </button>{" "}
                    <button type="button" aria-pressed={order === "name"} onClick={() => setOption("order", "name")}>
                        by name
                    </button>
                </span>
                <button type="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    {isTable ? "chart" : "table"}
                </button>
                <span class="quiet">
                    {plural(grid.lines.length, "host")}, {dateTime(clock, String(range.begin))} … {dateTime(clock, String(range.end))}, cells of {duration(grid.bin)}
                    {without > 0 && `; ${grouped(without)} without matching operations`}
                    {table.rows.length >= CELLS_MAX && "; truncated: choose fewer hosts or longer cells"}
                </span>
            </p>
            {isTable && <Table table={table} clock={LAKE_CLOCK} none={none} rowsShown={20} onSelect={(row) => (fleetChosen.value = { row, table, lead: leadOf(row, bin) })} />}
            {!isTable && grid.lines.length === 0 && <p class="quiet none">{none}</p>}
            {!isTable && grid.lines.length > 0 && (
                <HostMap
                    label={`hosts by time: ${measure.title}; arrow keys move, Enter opens a cell; the table shows the same data`}
                    grid={grid}
                    clock={clock}
                    measure={measure.title}
                    shown={measure.shown}
                    describe={describe}
                    theme={theme.version.value}
                    isDark={theme.name.value === "dark"}
                    onCell={pick}
                    onRange={(drawn) =>
                        choices({ when: rangeText({ begin: grid.begin + BigInt(Math.round(drawn.begin)), end: grid.begin + BigInt(Math.round(drawn.end)) }) })
                    }
                />
            )}
            {!isTable && <p class="quiet">click a cell for its slowest operations; drag to select a time range</p>}
        </section>
    );
}

function valueText(row: Row, measure: Measure): string {
    const value = row[measure.column];
    return typeof value === "number" || typeof value === "string" ? measure.shown(Number(value)) : "unknown";
}

/** Cell length in ns; if the page cannot parse the parameter, the smallest distance between cells. */
function binOf(rows: readonly Row[], binText: string, range: Range): bigint {
    const found = parseLength(binText);
    if (found !== null) return found;
    const begins = [...new Set(rows.map((row) => exactOf(row["ts"]) ?? 0n))].sort((a, b) => (a < b ? -1 : 1));
    const steps = begins.slice(1).map((at, before) => at - (begins[before] ?? at));
    return steps.reduce((least, step) => (step < least ? step : least), range.end - range.begin);
}
