import { useEffect, useState } from "preact/hooks";

import type { Parameters } from "../api";
import { useAnswer } from "../query";
import { differences, FlameGraph, type FlameData } from "../charts/index";
import { view } from "../state";
import { theme } from "../theme";
import { hasRows } from "../threads";
import { spanText } from "../times";
import { ratio } from "../units";
import { visible } from "../visible";
import { Pending, Problem } from "./problem";
import { WhyNone } from "./topic_state";

type Weight = "time" | "offcpu" | "samples";

const TITLES: Readonly<Record<Weight, string>> = {
    time: "time, including sampling gaps",
    offcpu: "off-CPU time",
    samples: "samples",
};

/** Best first: all time where sampling gaps are known, else off-CPU time, else samples. */
function weights(): readonly Weight[] {
    if (hasRows("sample_gap")) return ["time", "offcpu", "samples"];
    return hasRows("thread_state") ? ["offcpu", "samples", "time"] : ["time", "samples", "offcpu"];
}

/** Flame graph of a window and of the filtered threads. */
export function Flames({ parameters }: { readonly parameters: Parameters }) {
    const all = weights();
    const [chosen, setChosen] = useState<Weight | null>(null);
    const [tried, setTried] = useState(0);
    const { baseline } = view.value;
    const weight = chosen ?? all[tried] ?? "samples";
    const rest = { ...parameters, ...(baseline ? { vs: spanText(baseline) } : {}) };
    const query = useAnswer<FlameData>("flame", { ...rest, weight });
    const sampleQuery = useAnswer<FlameData>("flame", weight === "time" && hasRows("sample_gap") ? { ...parameters, weight: "samples" } : null);
    const isEmpty = query.answer?.total === 0 && !query.isPending;
    useEffect(() => {
        // An empty result falls back to the next weight, unless the user chose this one.
        if (isEmpty && chosen === null && tried + 1 < all.length) setTried(tried + 1);
    }, [isEmpty, chosen, tried]);
    const notes = weight === "time" && query.answer && sampleQuery.answer ? differences(query.answer, sampleQuery.answer) : [];
    return (
        <div class={query.isPending ? "flames stale" : "flames"}>
            <p class="actions" role="group" aria-label="weight">
                {all.map((one) => (
                    <button type="button" key={one} aria-pressed={weight === one} onClick={() => setChosen(one)}>
                        {TITLES[one]}
                    </button>
                ))}
            </p>
            {notes.length > 0 && (
                <p class="notes" role="note">
                    Samples alone mislead here:{" "}
                    {notes.map((one, at) => (
                        <span key={one.name}>
                            {at > 0 && "; "}
                            <bdi>{visible(one.name)}</bdi> {ratio(one.samples)} of samples, {ratio(one.time)} of time
                        </span>
                    ))}
                </p>
            )}
            {query.failure && <Problem failure={query.failure} />}
            {!query.answer && !query.failure && <Pending what="Aggregating stacks…" />}
            {query.answer && query.answer.total > 0 && <FlameGraph data={query.answer} theme={theme.version.value} />}
            {isEmpty && <WhyNone state="unknown" reason="No stacks in this window." recordWith="--stacks 1ms" />}
        </div>
    );
}
