import { clock, kindsOf, recording } from "../app";
import { useAnswer } from "../query";
import { exactCell, shownCell } from "../cells";
import { copy } from "../clipboard";
import { explainCommand, type ExplainRequest } from "../explainable";
import { ExplanationView } from "../pages/explain";
import { type Chosen, choose, chosen, DETAIL, explainChosen, requestOfChosen } from "../selection";
import { go, setOption, view } from "../state";
import { dumpTime } from "../threads";
import { clamp, withMargin } from "../times";
import type { Explanation } from "../types";
import { title, visible } from "../visible";
import { AnswerView, spanOf } from "./answer";
import { ThreadDump } from "./thread_dump";
import { Pending, Problem } from "./problem";
import { Tabs } from "./tabs";
import { Waterfall } from "./waterfall";

const TABS = [
    { id: "item", title: "details" },
    { id: "explain", title: "explain" },
    { id: "waterfall", title: "waterfall" },
    { id: "overlaps", title: "concurrent operations" },
    { id: "stack", title: "stacks" },
] as const;

/** Details of the selected row. */
export function Drawer() {
    const one = chosen.value;
    const dumpAt = dumpTime();
    if (!one && dumpAt !== null) return <ThreadDump at={dumpAt} />;
    if (!one) return null;
    const request = requestOfChosen();
    const tabs = TABS.map((of) => ({ ...of, isMissing: isMissing(of.id, one, request) }));
    // Of a row opened by its id the cells are not known.
    const wanted = view.value.options[DETAIL] ?? (one.row ? "item" : "explain");
    const active = tabs.find((of) => of.id === wanted && !of.isMissing)?.id ?? "item";
    return (
        <aside class="drawer" aria-label="selection">
            <header>
                <h2>
                    <bdi>{visible(one.id ?? "row")}</bdi>
                </h2>
                <Actions one={one} request={request} isExplained={active === "explain"} />
                <button type="button" aria-label="close" onClick={() => choose(null)}>
                    ×
                </button>
            </header>
            <Tabs label="selection" tabs={tabs} active={active} onChoose={(tab) => setOption(DETAIL, tab)}>
                {active === "item" && <Item one={one} />}
                {active === "explain" && request && <Explained request={request} />}
                {active === "waterfall" && one.id && <Waterfall parameters={{ w: one.id }} />}
                {active === "overlaps" && one.id && (
                    <AnswerView what="io" verb="top" parameters={{ overlaps: one.id, limit: 12 }} rowsShown={8} />
                )}
                {active === "stack" && one.id && <AnswerView what="stacks" verb="top" parameters={stackParameters(one)} rowsShown={8} />}
            </Tabs>
        </aside>
    );
}

function isMissing(tab: (typeof TABS)[number]["id"], one: Chosen, request: ExplainRequest | null): boolean {
    switch (tab) {
        case "item":
            return false;
        case "explain":
            return request === null;
        case "waterfall":
            return !(one.id?.startsWith("request:") ?? false);
        case "overlaps":
            return !one.id;
        case "stack":
            return !kindsOf(recording.value).has("stacks") || !one.id;
    }
}

function stackParameters(one: Chosen): Record<string, string> {
    const tid = one.row?.["tid"];
    return { w: one.id ?? "", ...(typeof tid === "number" ? { tid: String(tid) } : {}) };
}

interface ActionsProps {
    readonly one: Chosen;
    readonly request: ExplainRequest | null;
    readonly isExplained: boolean;
}

function Actions({ one, request, isExplained }: ActionsProps) {
    const window = one.row ? spanOf(one.row) : null;
    const tid = one.row?.["tid"];
    const command = request && explainCommand(recording.value?.name ?? "@last", request);
    return (
        <p class="actions">
            {request && !isExplained && (
                <button type="button" class="primary" title="e" onClick={explainChosen}>
                    Explain
                </button>
            )}
            {window && (
                <button type="button" onClick={() => go({ window: clamp(withMargin(window), clock.value.length) })}>
                    zoom to this row
                </button>
            )}
            {window && (
                <button
                    type="button"
                    onClick={() =>
                        go({
                            page: "threads",
                            window: clamp(withMargin(window), clock.value.length),
                            options: typeof tid === "number" ? { at: String(tid) } : {},
                        })
                    }
                >
                    show on the timeline
                </button>
            )}
            {command && (
                <button type="button" title={title(command)} onClick={() => void copy(command, "command")}>
                    copy command
                </button>
            )}
        </p>
    );
}

function Item({ one }: { one: Chosen }) {
    const { row, table } = one;
    if (!row || !table) return <p class="quiet">details unavailable for a row opened by its id; use another tab</p>;
    return (
        <dl class="item">
            {table.columns
                .filter((column) => (row[column.name] ?? null) !== null)
                .map((column) => (
                    <div key={column.name}>
                        <dt>{visible(column.title)}</dt>
                        <dd title={title(exactCell(row[column.name]))}>
                            <bdi>{shownCell(row[column.name], column, clock.value)}</bdi>
                        </dd>
                    </div>
                ))}
        </dl>
    );
}

function Explained({ request }: { request: ExplainRequest }) {
    const query = useAnswer<Explanation>("explain", request);
    if (query.failure) return <Problem failure={query.failure} />;
    if (!query.answer || query.isPending) return <Pending what="Searching for the cause…" />;
    return <ExplanationView explanation={query.answer} isStale={false} none="Nothing explains this row." />;
}
