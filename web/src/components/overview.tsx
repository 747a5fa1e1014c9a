import { api, clock, recording } from "../app";
import { useAnswer } from "../query";
import { Minimap } from "../charts/index";
import { marks } from "../marks";
import { go, view } from "../state";
import { theme } from "../theme";

interface Series {
    readonly series: readonly { readonly name: string; readonly unit: string; readonly values: readonly (number | null)[] }[];
}

const POINTS = 600;
/** Series of the overview: busy CPUs, uninterruptible threads, disk throughput. */
const SHOWN = ["cpu", "blocked", "block_bytes"];

/** Overview of the whole recording, always visible. */
export function Overview() {
    const isReady = recording.value?.tiles.state === "ready" || api.value?.isReport === true;
    const query = useAnswer<Series>("series", isReady ? { name: "activity", points: POINTS } : null);
    const series = (query.answer?.series ?? [])
        .filter((one) => SHOWN.includes(one.name))
        .map((one) => ({ name: one.name, values: one.values.map((value) => value ?? 0) }));
    return (
        <section class="overview" aria-label="the whole recording">
            <Minimap
                series={series}
                length={clock.value.length}
                window={view.value.window}
                baseline={view.value.baseline}
                marks={marks.value}
                theme={theme.version.value}
                onWindow={(window, isDone) => go({ window: window && window.begin <= 0 && window.end >= clock.value.length ? null : window }, !isDone)}
            />
        </section>
    );
}
