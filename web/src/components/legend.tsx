import type { TrackName } from "../charts/index";

const CLASSES: Readonly<Record<TrackName, readonly string[]>> = {
    states: ["running", "runnable", "blocked", "asleep"],
    calls: ["s1", "s4", "asleep", "s6"],
    cpus: ["running", "user", "blocked", "asleep"],
    locks: ["blocked", "runnable", "asleep", "asleep"],
    block: ["s1", "s2", "s4", "s6"],
    samples: ["running", "asleep", "inferred", "unseen"],
};

/** Legend of colours and textures. */
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
                    below: system calls <i class="swatch colour-s1" aria-hidden="true" /> files <i class="swatch colour-s4" aria-hidden="true" /> network{" "}
                    <i class="swatch colour-asleep" aria-hidden="true" /> waiting
                </li>
            )}
            {track === "cpus" && <li class="quiet">one colour per thread</li>}
        </ul>
    );
}

const SAMPLED: readonly (readonly [string, string])[] = [
    ["running", "running managed code"],
    ["s1", "native code"],
    ["s4", "kernel code"],
    ["asleep", "waiting"],
    ["inferred", "kernel wait (inferred from a sampling gap)"],
    ["unseen", "not sampled"],
];

/** Legend of samples; inferred states are dotted and labelled as such. */
export function SampleLegend() {
    return (
        <ul class="legend" aria-label="colours of samples">
            {SAMPLED.map(([colour, label], at) => (
                <li key={colour}>
                    {at === 0 && "samples: "}
                    <i class={`swatch colour-${colour}`} aria-hidden="true" /> {label}
                </li>
            ))}
            <li class="quiet">zoomed in: one colour per function</li>
        </ul>
    );
}
