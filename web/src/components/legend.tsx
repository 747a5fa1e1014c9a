import type { TrackName } from "../charts/index";

const CLASSES: Readonly<Record<TrackName, readonly string[]>> = {
    states: ["running", "runnable", "blocked", "asleep"],
    calls: ["s1", "s4", "asleep", "s6"],
    cpus: ["running", "user", "blocked", "asleep"],
    locks: ["blocked", "runnable", "asleep", "asleep"],
    block: ["s1", "s2", "s4", "s6"],
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
