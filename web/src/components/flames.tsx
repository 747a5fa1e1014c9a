import { useEffect, useState } from "preact/hooks";

import type { Parameters } from "../api";
import { useAnswer } from "../ask";
import { differences, FlameGraph, type FlameData } from "../charts/index";
import { view } from "../state";
import { theme } from "../theme";
import { hasRows } from "../threads";
import { spanText } from "../times";
import { ratio } from "../units";
import { visible } from "../visible";
import { Pending, Problem } from "./problem";

type Weight = "time" | "offcpu" | "samples";

const TITLES: Readonly<Record<Weight, string>> = {
    time: "time, also without samples",
    offcpu: "time waited",
    samples: "samples",
};

/** What suits the recording first: all time where gaps between samples are known, else waits, else what was sampled. */
function weights(): readonly Weight[] {
    if (hasRows("sample_gap")) return ["time", "offcpu", "samples"];
    return hasRows("thread_state") ? ["offcpu", "samples", "time"] : ["time", "samples", "offcpu"];
}

/** Stacks of a window and of whom the filter leaves. */
export function Flames({ parameters }: { readonly parameters: Parameters }) {
    const all = weights();
    const [chosen, setChosen] = useState<Weight | null>(null);
    const [tried, setTried] = useState(0);
    const { baseline } = view.value;
    const weight = chosen ?? all[tried] ?? "samples";
    const rest = { ...parameters, ...(baseline ? { vs: spanText(baseline) } : {}) };
    const asked = useAnswer<FlameData>("flame", { ...rest, weight });
    const counted = useAnswer<FlameData>("flame", weight === "time" && hasRows("sample_gap") ? { ...parameters, weight: "samples" } : null);
    const isEmpty = asked.answer?.total === 0 && !asked.isPending;
    useEffect(() => {
        // Nothing of one kind is no reason to show nothing, unless it was asked for.
        if (isEmpty && chosen === null && tried + 1 < all.length) setTried(tried + 1);
    }, [isEmpty, chosen, tried]);
    const notes = weight === "time" && asked.answer && counted.answer ? differences(asked.answer, counted.answer) : [];
    return (
        <div class={asked.isPending ? "flames stale" : "flames"}>
            <p class="actions" role="group" aria-label="what is counted">
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
            {asked.failure && <Problem failure={asked.failure} />}
            {!asked.answer && !asked.failure && <Pending what="adding up stacks" />}
            {asked.answer && asked.answer.total > 0 && <FlameGraph data={asked.answer} theme={theme.version.value} />}
            {isEmpty && <p class="quiet none">no stacks in this window: they are recorded with whyslow record --stacks 1ms</p>}
        </div>
    );
}
