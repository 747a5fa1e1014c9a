import { useState } from "preact/hooks";

import type { Parameters } from "../api";
import { useAnswer } from "../ask";
import { FlameGraph, type FlameData } from "../charts/index";
import { view } from "../state";
import { theme } from "../theme";
import { spanText } from "../times";
import { Pending, Problem } from "./problem";

/** Stacks of a window and of whom the filter leaves, by time away from the CPU or by samples on it. */
export function Flames({ parameters }: { readonly parameters: Parameters }) {
    const [weight, setWeight] = useState<"offcpu" | "samples">("offcpu");
    const { baseline } = view.value;
    const asked = useAnswer<FlameData>("flame", { ...parameters, weight, ...(baseline ? { vs: spanText(baseline) } : {}) });
    return (
        <div class={asked.isPending ? "flames stale" : "flames"}>
            <p class="actions" role="group" aria-label="what is counted">
                {(["offcpu", "samples"] as const).map((one) => (
                    <button type="button" key={one} aria-pressed={weight === one} onClick={() => setWeight(one)}>
                        {one === "offcpu" ? "time waited" : "samples on CPUs"}
                    </button>
                ))}
            </p>
            {asked.failure && <Problem failure={asked.failure} />}
            {!asked.answer && !asked.failure && <Pending what="adding up stacks" />}
            {asked.answer && asked.answer.total > 0 && <FlameGraph data={asked.answer} theme={theme.version.value} />}
            {asked.answer && asked.answer.total === 0 && (
                <p class="quiet none">no stacks in this window: they are recorded with whyslow record --stacks 1ms</p>
            )}
        </div>
    );
}
