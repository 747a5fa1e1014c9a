import { useState } from "preact/hooks";

import { clock, kindsOf, recording } from "../app";
import { useAnswer } from "../query";
import { exactCell, shownCell } from "../cells";
import { copy } from "../clipboard";
import { type Chosen, choose, chosen } from "../selection";
import { go, quoted } from "../state";
import { dumpTime } from "../threads";
import { clamp, withMargin } from "../times";
import type { Explanation } from "../types";
import { title, visible } from "../visible";
import { AnswerView, spanOf } from "./answer";
import { ThreadDump } from "./thread_dump";
import { Pending, Problem } from "./problem";
import { FindingCard } from "./finding";
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
    const [tab, setTab] = useState<string>("item");
    const dumpAt = dumpTime();
    if (!one && dumpAt !== null) return <ThreadDump at={dumpAt} />;
    if (!one) return null;
    const isOperation = one.id?.startsWith("op:") ?? false;
    const isRequest = one.id?.startsWith("request:") ?? false;
    const kinds = kindsOf(recording.value);
    const tabs = TABS.map((of) => ({
        ...of,
        isMissing: of.id === "item" ? false : of.id === "stack" ? !kinds.has("stacks") || !one.id : of.id === "explain" ? !isOperation : of.id === "waterfall" ? !isRequest : !one.id,
    }));
    const usable = tabs.find((of) => of.id === tab && !of.isMissing) ?? tabs[0];
    const active = !one.row && tab === "item" && isOperation ? "explain" : (usable?.id ?? "item");
    return (
        <aside class="drawer" aria-label="selection">
            <header>
                <h2>
                    <bdi>{visible(one.id ?? "row")}</bdi>
                </h2>
                <Actions one={one} />
                <button type="button" aria-label="close" onClick={() => choose(null)}>
                    ×
                </button>
            </header>
            <Tabs label="selection" tabs={tabs} active={active} onChoose={setTab}>
                {active === "item" && <Item one={one} />}
                {active === "explain" && one.id && <Explained id={one.id} />}
                {active === "waterfall" && one.id && <Waterfall parameters={{ w: one.id }} />}
                {active === "overlaps" && one.id && (
                    <AnswerView what="io" verb="top" parameters={{ overlaps: one.id, limit: 12 }} rowsShown={8} />
                )}
                {active === "stack" && one.id && <AnswerView what="stacks" verb="top" parameters={stackParameters(one)} rowsShown={8} />}
            </Tabs>
        </aside>
    );
}

function stackParameters(one: Chosen): Record<string, string> {
    const tid = one.row?.["tid"];
    return { w: one.id ?? "", ...(typeof tid === "number" ? { tid: String(tid) } : {}) };
}

function Actions({ one }: { one: Chosen }) {
    const window = one.row ? spanOf(one.row) : null;
    const tid = one.row?.["tid"];
    const command = `whyslow explain ${quoted(recording.value?.name ?? "@last")} -w ${one.id ?? ""}`;
    return (
        <p class="actions">
            {window && (
                <button type="button" onClick={() => go({ window: clamp(withMargin(window), clock.value.length) })}>
                    zoom to it
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
            {one.id?.startsWith("op:") && (
                <button type="button" onClick={() => void copy(command, "command")}>
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

function Explained({ id }: { id: string }) {
    const query = useAnswer<Explanation>("explain", { w: id });
    if (query.failure) return <Problem failure={query.failure} />;
    const finding = query.answer?.findings[0];
    if (!query.answer || query.isPending) return <Pending what="Searching for the cause…" />;
    return finding ? <FindingCard finding={finding} number={1} isOpen /> : <p class="quiet">no explanation found</p>;
}
