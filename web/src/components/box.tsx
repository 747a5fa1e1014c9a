import { useState } from "preact/hooks";

import type { Parameters } from "../api";
import { clock, recording } from "../app";
import { useAnswer } from "../query";
import { bookmarks, saveBookmarks } from "../bookmarks";
import { copy } from "../clipboard";
import { ExplanationView } from "../pages/explain";
import { filterTitle, filterWords, go, quoted, view } from "../state";
import { type Span, spanText, timeOfDay } from "../times";
import type { Explanation } from "../types";
import { duration } from "../units";
import { AnswerView } from "./answer";
import { Flames } from "./flames";
import { Pending, Problem } from "./problem";

/** A box dragged on a chart. */
export interface BoxOf {
    readonly window: Span;
    /** The threads in it and, for heat maps, the range of latencies. */
    readonly filter: Readonly<Record<string, string>>;
}

interface Props {
    readonly box: BoxOf;
    /** Kind of the operations in it. */
    readonly what: string;
    readonly onClose: () => void;
}

type Panel = "explain" | "differs" | "flame" | null;

/** Actions for a box: zoom, explain, compare. */
export function Box({ box, what, onClose }: Props) {
    const [panel, setPanel] = useState<Panel>(null);
    const { begin, end } = box.window;
    const parameters: Parameters = { w: spanText(box.window), ...view.value.filter, ...box.filter };
    const command = `whyslow explain ${quoted(recording.value?.name ?? "@last")} ${filterWords(explainable(box.filter), box.window)}`;
    const toggle = (to: Panel) => setPanel(panel === to ? null : to);
    const keep = () => void saveBookmarks([...bookmarks.value, { begin, end, note: "box" }]);
    return (
        <section class="card box" aria-label="box">
            <p class="actions">
                <b>
                    {timeOfDay(clock.value, begin, (end - begin) / 100)} + {duration(end - begin)}
                </b>
                {Object.entries(box.filter).map(([key, value]) => (
                    <span class="badge" key={key}>
                        {filterTitle(key)} {value.length > 40 ? `${value.slice(0, 38)}…` : value}
                    </span>
                ))}
                <button type="button" onClick={() => go({ window: box.window })}>
                    zoom
                </button>
                <button type="button" class="primary" aria-expanded={panel === "explain"} onClick={() => toggle("explain")}>
                    explain this box
                </button>
                <button type="button" aria-expanded={panel === "differs"} onClick={() => toggle("differs")}>
                    differences
                </button>
                <button type="button" aria-expanded={panel === "flame"} onClick={() => toggle("flame")}>
                    flame graph
                </button>
                <button type="button" onClick={() => go({ baseline: box.window })}>
                    set as baseline
                </button>
                <button type="button" onClick={keep}>
                    bookmark
                </button>
                <button type="button" onClick={() => void copy(command, "command")}>
                    copy command
                </button>
                <button type="button" aria-label="close" onClick={onClose}>
                    ×
                </button>
            </p>
            {panel === "explain" && <Explained parameters={{ w: spanText(box.window), ...explainable(box.filter) }} slow={slowOf(what, box)} />}
            {panel === "differs" && <AnswerView what={what} verb="differs" parameters={{ ...parameters, ...versus() }} />}
            {panel === "flame" && <Flames parameters={parameters} />}
        </section>
    );
}

function versus(): Parameters {
    return view.value.baseline ? { vs: spanText(view.value.baseline) } : {};
}

/** The filters that explain accepts. */
function explainable(filter: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(filter).filter(([key]) => ["pid", "tid", "dev"].includes(key)));
}

/** For a box on a heat map: a condition that selects the slow operations in it. */
function slowOf(what: string, box: BoxOf): string | undefined {
    const { min, op } = box.filter;
    if (what !== "io" || !min) return undefined;
    const calls = op ? op.split(",") : ["open", "read", "write", "sync", "metadata"];
    return calls.map((call) => `${call}>${min}`).join("|");
}

function Explained({ parameters, slow }: { parameters: Parameters; slow: string | undefined }) {
    const query = useAnswer<Explanation>("explain", { ...parameters, slow });
    if (query.failure) return <Problem failure={query.failure} />;
    if (!query.answer || query.isPending) return <Pending what="Searching for the cause…" />;
    return <ExplanationView explanation={query.answer} isStale={false} />;
}
