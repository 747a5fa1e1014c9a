import { useMemo, useState } from "preact/hooks";

import { clock, recording } from "../app";
import { useAnswer } from "../query";
import { copy } from "../clipboard";
import type { Lane } from "../charts/index";
import { toNumber } from "../exact";
import { common, quoted, view } from "../state";
import { followed, hideDump, keyOf, highlighted, nameOf, showDump, type SampleGap, together, useGaps, useThreads, useWaits, type Wait } from "../threads";
import { offsetText, sinceBegin, timeOfDay } from "../times";
import type { Answer, AnswerTable, Cell } from "../types";
import { duration } from "../units";
import { visible } from "../visible";
import { Caveats } from "./answer";
import { Pending, Problem } from "./problem";
import { Table } from "./table";

interface Frame {
    readonly name: string;
    readonly kind: string;
    readonly module: string;
}

/** Threads with one stack in one state. */
interface Group {
    readonly rank: number;
    readonly state: string;
    readonly longest: number | null;
    readonly names: readonly string[];
    readonly waitsFor: readonly string[];
    readonly heldBy: readonly string[];
    readonly frames: readonly Frame[];
}

/** The stacks of all threads at a time, as in a thread dump. */
export function ThreadDump({ at }: { readonly at: number }) {
    const [isTable, setTable] = useState(false);
    const { pid, tid, comm } = common.value;
    const query = useAnswer<Answer>("table", { what: "threads", view: "dump", at: offsetText(at), pid, tid, comm });
    const table = query.answer?.tables[0] ?? null;
    const groups = useMemo(() => (table ? groupsOf(table) : []), [table]);
    const { lanes } = useThreads();
    const lane = lanes.find((one) => keyOf(one) === view.value.options["at"]) ?? null;
    // A report returns the nearest dump that it includes.
    const stated = table?.facts["at_ns"];
    const time = typeof stated === "number" || typeof stated === "string" ? sinceBegin(clock.value, stated) : at;
    const command = `whyslow threads dump ${quoted(recording.value?.name ?? "@last")} --at ${offsetText(at)}`;
    return (
        <aside class="drawer thread-dump" aria-label="thread dump">
            <header>
                <h2>all stacks at {timeOfDay(clock.value, time, 1e6)}</h2>
                <span class="quiet">
                    {groups.reduce((sum, group) => sum + group.names.length, 0)} threads, {groups.length} different stacks
                </span>
                <p class="actions">
                    <button type="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                        table
                    </button>
                    <button type="button" onClick={() => void copy(command, "command")}>
                        copy command
                    </button>
                </p>
                <button type="button" aria-label="close" onClick={hideDump}>
                    ×
                </button>
            </header>
            {query.failure && <Problem failure={query.failure} />}
            {!table && !query.failure && <Pending what="Loading the thread dump…" />}
            {table && isTable && <Table table={table} rowsShown={20} />}
            {table && !isTable && (
                <>
                    {lane && <One lane={lane} lanes={lanes} at={time} group={groups.find((group) => group.names.includes(nameOf(lane))) ?? null} />}
                    <ol class="groups" aria-label="groups of threads">
                        {groups.map((group) => (
                            <Item key={group.rank} group={group} />
                        ))}
                    </ol>
                    {groups.length === 0 && <p class="quiet none">no stacks at this time</p>}
                </>
            )}
            {query.answer && <Caveats answer={query.answer} />}
        </aside>
    );
}

function Item({ group }: { readonly group: Group }) {
    const isHighlighted = group.names.length > 0 && group.names.every((name) => highlighted.value.has(name));
    const toggle = () => (highlighted.value = isHighlighted ? new Set() : new Set(group.names));
    const [top] = group.frames;
    return (
        <li>
            <button type="button" aria-pressed={isHighlighted} onClick={toggle} title="highlight these threads in the chart">
                <b>{group.names.length}</b> × <span class={`state ${stateClass(group.state)}`}>{visible(group.state)}</span>
                {group.longest !== null && <> for {duration(group.longest)}</>}, <bdi>{visible(top?.name ?? "no stack")}</bdi>
            </button>{" "}
            <Names names={group.names} />
            <Locks group={group} />
            <details>
                <summary>{group.frames.length} frames</summary>
                <Stack frames={group.frames} />
            </details>
        </li>
    );
}

/** Number of names shown before “and N more”. */
const NAMES_SHOWN = 6;

function Names({ names }: { readonly names: readonly string[] }) {
    const [isAll, setAll] = useState(false);
    const shown = isAll ? names : names.slice(0, NAMES_SHOWN);
    return (
        <span class="quiet">
            {shown.map((name, at) => (
                <span key={name}>
                    {at > 0 && ", "}
                    <bdi>{visible(name)}</bdi>
                </span>
            ))}
            {shown.length < names.length && (
                <>
                    {" "}
                    <button type="button" class="link" onClick={() => setAll(true)}>
                        and {names.length - shown.length} more
                    </button>
                </>
            )}
        </span>
    );
}

function Locks({ group }: { readonly group: Group }) {
    if (group.waitsFor.length === 0 && group.heldBy.length === 0) return null;
    return (
        <p>
            {group.waitsFor.length > 0 && <>waits for {visible(group.waitsFor.join(", "))}</>}
            {group.heldBy.length > 0 && <>, held by {visible(group.heldBy.join(", "))}</>}
        </p>
    );
}

function Stack({ frames }: { readonly frames: readonly Frame[] }) {
    return (
        <ol class="frames">
            {frames.map((frame, at) => (
                <li key={at}>
                    <bdi>{visible(frame.name)}</bdi> <span class="quiet">{visible(frame.module || frame.kind)}</span>
                </li>
            ))}
        </ol>
    );
}

interface OneProps {
    readonly lane: Lane;
    readonly lanes: readonly Lane[];
    readonly at: number;
    readonly group: Group | null;
}

/** The selected thread: its stack, what it waited for, and the lock holder. */
function One({ lane, lanes, at, group }: OneProps) {
    const waits = useWaits(lanes, true);
    const gaps = useGaps(lanes);
    const holds = (one: { readonly begin: number; readonly end: number }) => one.begin <= at && at < one.end;
    const wait = waits.find((one) => one.lane === lane && holds(one)) ?? null;
    const gap = gaps.find((one) => one.lane === lane && holds(one)) ?? null;
    const goTo = () => {
        const to = followed(waits, gaps, lane, at);
        if (to) showDump(to.at, to.lane);
    };
    return (
        <section class="one" aria-label="the thread">
            <h3>
                <bdi>{visible(nameOf(lane))}</bdi>
                {group && <>: {visible(group.state)}</>}
            </h3>
            {wait && <Waited wait={wait} onGo={goTo} />}
            {gap && <GapInfo gap={gap} others={together(gaps, gap)} at={at} />}
            {group ? <Stack frames={group.frames} /> : <p class="quiet">no stack at this time</p>}
        </section>
    );
}

function Waited({ wait, onGo }: { readonly wait: Wait; readonly onGo: () => void }) {
    return (
        <p>
            waited {duration(wait.end - wait.begin)} for <bdi>{visible(wait.lock)}</bdi>
            {wait.holder ? (
                <>
                    , held by{" "}
                    <button type="button" class="link" onClick={onGo}>
                        {visible(nameOf(wait.holder))}
                    </button>{" "}
                    ({wait.confidence} confidence), which was in <bdi>{visible(wait.doing)}</bdi>
                </>
            ) : (
                "; holder unknown"
            )}
        </p>
    );
}

function GapInfo({ gap, others, at }: { readonly gap: SampleGap; readonly others: readonly SampleGap[]; readonly at: number }) {
    const goTo = (other: SampleGap) => {
        const inside = other.begin <= at && at < other.end;
        const overlap = (Math.max(other.begin, gap.begin) + Math.min(other.end, gap.end)) / 2;
        if (other.lane) showDump(inside ? at : overlap, other.lane);
    };
    return (
        <p>
            sampling gap of {duration(gap.end - gap.begin)}, until the end of <bdi>{visible(gap.endedIn)}</bdi> ({gap.kind.replace("_", " ")}, inferred)
            {others.length > 0 && "; simultaneous gaps: "}
            {others.slice(0, NAMES_SHOWN).map((other, number) => (
                <span key={number}>
                    {number > 0 && ", "}
                    <button type="button" class="link" onClick={() => goTo(other)}>
                        {visible(other.lane ? nameOf(other.lane) : "")}
                    </button>{" "}
                    in <bdi>{visible(other.endedIn)}</bdi>
                </span>
            ))}
        </p>
    );
}

function stateClass(state: string): string {
    if (state.includes("inferred")) return "is-inferred";
    if (state === "uninterruptible") return "is-blocked";
    return state === "running" ? "is-running" : "";
}

/** Groups from the rows of the result: the first row of a group has its figures, each row has a frame. */
function groupsOf(table: AnswerTable): readonly Group[] {
    const groups: (Omit<Group, "frames"> & { frames: Frame[] })[] = [];
    for (const row of table.rows) {
        const rank = number(row["rank"]) ?? 0;
        let group = groups[groups.length - 1];
        if (!group || group.rank !== rank) {
            group = {
                rank,
                state: word(row["state"]) || "unknown",
                longest: number(row["for_ns"]),
                names: list(row["names"]),
                waitsFor: list(row["waits_for"]),
                heldBy: list(row["held_by"]),
                frames: [],
            };
            groups.push(group);
        }
        group.frames.push({ name: word(row["function"]), kind: word(row["frame_kind"]), module: word(row["module"]) });
    }
    return groups;
}

function word(cell: Cell | undefined): string {
    return typeof cell === "string" ? cell : "";
}

function number(cell: Cell | undefined): number | null {
    return typeof cell === "number" || typeof cell === "string" ? toNumber(cell) : null;
}

function list(cell: Cell | undefined): readonly string[] {
    return Array.isArray(cell) ? (cell as readonly Cell[]).map((one) => String(one)) : [];
}
