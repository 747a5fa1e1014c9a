import { useMemo, useState } from "preact/hooks";

import { clock, recording } from "../app";
import { useAnswer } from "../ask";
import { copy } from "../clipboard";
import type { Lane } from "../charts/index";
import { toNumber } from "../exact";
import { common, quoted, view } from "../state";
import { followed, hideMoment, keyOf, meant, nameOf, showMoment, type Silence, together, useSilences, useThreads, useWaits, type Wait } from "../threads";
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

/** The stacks of all threads at a moment, as a thread dump has them. */
export function Moment({ at }: { readonly at: number }) {
    const [isTable, setTable] = useState(false);
    const { pid, tid, comm } = common.value;
    const asked = useAnswer<Answer>("table", { what: "threads", view: "dump", at: offsetText(at), pid, tid, comm });
    const table = asked.answer?.tables[0] ?? null;
    const groups = useMemo(() => (table ? groupsOf(table) : []), [table]);
    const { lanes } = useThreads();
    const lane = lanes.find((one) => keyOf(one) === view.value.options["at"]) ?? null;
    // A report has other moments than any that is asked for.
    const told = table?.facts["at_ns"];
    const moment = typeof told === "number" || typeof told === "string" ? sinceBegin(clock.value, told) : at;
    const command = `whyslow threads dump ${quoted(recording.value?.name ?? "@last")} --at ${offsetText(at)}`;
    return (
        <aside class="drawer moment" aria-label="stacks at a moment">
            <header>
                <h2>all stacks at {timeOfDay(clock.value, moment, 1e6)}</h2>
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
                <button type="button" aria-label="close" onClick={hideMoment}>
                    ×
                </button>
            </header>
            {asked.failure && <Problem failure={asked.failure} />}
            {!table && !asked.failure && <Pending what="looking at all threads" />}
            {table && isTable && <Table table={table} rowsShown={20} />}
            {table && !isTable && (
                <>
                    {lane && <One lane={lane} lanes={lanes} at={moment} group={groups.find((group) => group.names.includes(nameOf(lane))) ?? null} />}
                    <ol class="groups" aria-label="groups of threads">
                        {groups.map((group) => (
                            <Item key={group.rank} group={group} />
                        ))}
                    </ol>
                    {groups.length === 0 && <p class="quiet none">no stacks are known of this moment</p>}
                </>
            )}
            {asked.answer && <Caveats answer={asked.answer} />}
        </aside>
    );
}

function Item({ group }: { readonly group: Group }) {
    const isMeant = group.names.length > 0 && group.names.every((name) => meant.value.has(name));
    const toggle = () => (meant.value = isMeant ? new Set() : new Set(group.names));
    const [top] = group.frames;
    return (
        <li>
            <button type="button" aria-pressed={isMeant} onClick={toggle} title="shows these threads in the chart">
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

/** Names shown before the rest is a number. */
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

/** The thread that is looked at: its own stack, what it waited for, and where that leads. */
function One({ lane, lanes, at, group }: OneProps) {
    const waits = useWaits(lanes, true);
    const silences = useSilences(lanes);
    const holds = (one: { readonly begin: number; readonly end: number }) => one.begin <= at && at < one.end;
    const wait = waits.find((one) => one.lane === lane && holds(one)) ?? null;
    const silence = silences.find((one) => one.lane === lane && holds(one)) ?? null;
    const goTo = () => {
        const to = followed(waits, silences, lane, at);
        if (to) showMoment(to.at, to.lane);
    };
    return (
        <section class="one" aria-label="the thread">
            <h3>
                <bdi>{visible(nameOf(lane))}</bdi>
                {group && <>: {visible(group.state)}</>}
            </h3>
            {wait && <Waited wait={wait} onGo={goTo} />}
            {silence && <Silent silence={silence} others={together(silences, silence)} at={at} />}
            {group ? <Stack frames={group.frames} /> : <p class="quiet">no stack of it is known at this moment</p>}
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
                "; who held it is not known"
            )}
        </p>
    );
}

function Silent({ silence, others, at }: { readonly silence: Silence; readonly others: readonly Silence[]; readonly at: number }) {
    const goTo = (other: Silence) => {
        const inside = other.begin <= at && at < other.end;
        const moment = (Math.max(other.begin, silence.begin) + Math.min(other.end, silence.end)) / 2;
        if (other.lane) showMoment(inside ? at : moment, other.lane);
    };
    return (
        <p>
            no sample for {duration(silence.end - silence.begin)}, until the end of <bdi>{visible(silence.endedIn)}</bdi> ({silence.kind.replace("_", " ")}, inferred)
            {others.length > 0 && "; silent at the same time: "}
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

/** Rows of the answer: the first of a group has its figures, each has a frame. */
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
