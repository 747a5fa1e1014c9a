import type { TrackName } from "../charts/index";

const CLASSES: Readonly<Record<TrackName, readonly string[]>> = {
    states: ["running", "runnable", "blocked", "asleep"],
    calls: ["s1", "s4", "asleep", "s6"],
    cpus: ["running", "user", "blocked", "asleep"],
    locks: ["blocked", "runnable", "asleep", "asleep"],
    block: ["s1", "s2", "s4", "s6"],
    samples: ["running", "asleep", "inferred", "unseen"],
};

/** What colours and textures mean. */
export function Legend({ track, groups }: { readonly track: TrackName; readonly groups: readonly string[] }) {
    return (
        <ul class="legend" aria-label="colours">
            {groups.map((group, at) =>
                group && group !== "-" && group !== "unused" ? (
                    <li key={group}>
                        <i class={`swatch colour-${CLASSES[track][at] ?? "asleep"}`} aria-hidden="true" /> {group}
                    </li>
                ) : null,
            )}
            {track === "states" && (
                <li class="quiet">
                    below: calls <i class="swatch colour-s1" aria-hidden="true" /> files <i class="swatch colour-s4" aria-hidden="true" /> network{" "}
                    <i class="swatch colour-asleep" aria-hidden="true" /> waiting
                </li>
            )}
            {track === "cpus" && <li class="quiet">a colour per thread</li>}
        </ul>
    );
}

const SAMPLED: readonly (readonly [string, string])[] = [
    ["running", "running in code of a runtime"],
    ["s1", "native code"],
    ["s4", "the kernel's"],
    ["asleep", "waiting"],
    ["inferred", "kernel wait (inferred: no sample was possible)"],
    ["unseen", "not sampled"],
];

/** The same for samples; what nobody recorded is dotted and says so. */
export function SampleLegend() {
    return (
        <ul class="legend" aria-label="colours of samples">
            {SAMPLED.map(([colour, says], at) => (
                <li key={colour}>
                    {at === 0 && "samples: "}
                    <i class={`swatch colour-${colour}`} aria-hidden="true" /> {says}
                </li>
            ))}
            <li class="quiet">zoomed in: a colour per function</li>
        </ul>
    );
}
