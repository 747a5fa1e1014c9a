import { useMemo, useState } from "preact/hooks";

import { ApiError, type Parameters } from "../api";
import { api, clock, recording, shown } from "../app";
import { useAnswer } from "../ask";
import { type Arrow, type BandOf, type Lane, TrackChart, type TrackName } from "../charts/index";
import type { Exact } from "../exact";
import { LANES_MAX } from "../limits";
import { marks } from "../marks";
import { choose } from "../selection";
import { common, go, setOption, view } from "../state";
import { theme } from "../theme";
import { offsetText, sinceBegin, type Span } from "../times";
import { hideMoment } from "../threads";
import { fetchTiles, lanesOf, levelsOf, type Track } from "../tracks";
import type { Answer } from "../types";
import { duration } from "../units";
import { AnswerView, spanOf } from "./answer";
import { Box, type BoxOf } from "./box";
import { Legend } from "./legend";
import { Pending, Problem } from "./problem";

/** Below so many ns a pixel, and with so few wakeups, arrows can be told apart. */
const ARROW_WINDOW_NS = 2e9;
const ARROWS_MAX = 300;

const HEIGHT: Readonly<Record<TrackName, number>> = { states: 24, calls: 24, cpus: 22, locks: 18, block: 30, samples: 20 };

/** What threads, CPUs, devices or locks did, lane by lane. */
export function LaneChart({ track }: { readonly track: TrackName }) {
    const [failure, setFailure] = useState<ApiError | null>(null);
    const [box, setBox] = useState<BoxOf | null>(null);
    const [isTable, setTable] = useState(false);
    const of = recording.value;
    const isReady = of?.tiles.state === "ready" || api.value?.isReport === true;
    const asked = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isReady ? { track, limit: LANES_MAX, ...whose(track) } : null);
    const told = asked.answer?.tracks[0] ?? null;
    const lanes = useMemo(() => (told ? lanesOf(told) : []), [told]);
    const bands = useMemo(() => bandsOf(track), [track, of?.digest]);
    const active = view.value.options["at"];
    const lane = lanes.find((one) => (one.tid === null ? one.name : String(one.tid)) === active)?.lane ?? null;
    if (of?.tiles.state === "failed") return <Problem failure={new ApiError(of.tiles.error ?? "the time line could not be made", 500)} />;
    if (!isReady) return <Building done={of?.tiles.done ?? 0} />;
    if (asked.failure) return <Problem failure={asked.failure} />;
    if (!told) return <Pending what="asking who there is" />;
    if (lanes.length === 0) return <p class="quiet none">nobody in this window</p>;
    const onItem = (one: Lane, at: number) => void chooseItem(track, one, at);
    return (
        <section class="lanes">
            <header>
                <Legend track={track} groups={told.groups} />
                {told.total > lanes.length && (
                    <span class="quiet">
                        the busiest {lanes.length} of {told.total}; filter for others
                    </span>
                )}
                <button type="button" class="small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    {isTable ? "chart" : "table"}
                </button>
            </header>
            {failure && <Problem failure={failure} />}
            {isTable ? (
                <Twin track={track} />
            ) : (
                <TrackChart
                    label={`${track} over time`}
                    clock={clock.value}
                    window={shown.value}
                    lanes={lanes}
                    bands={bands}
                    rowHeight={HEIGHT[track]}
                    height={230}
                    baseline={view.value.baseline}
                    marks={marks.value}
                    arrows={[]}
                    active={lane}
                    version={`${of?.id} ${of?.digest ?? ""}`}
                    theme={theme.version.value}
                    onWindow={(window, isDone) => go({ window }, !isDone)}
                    onAll={() => go({ window: null })}
                    onBox={(drawn) => setBox(drawn ? { window: drawn.range, filter: filterOf(track, drawn.lanes, lanes.length) } : null)}
                    onBaseline={(baseline) => go({ baseline })}
                    onItem={onItem}
                    onFailure={(error) => setFailure(error instanceof ApiError ? error : new ApiError(String(error), 0))}
                    describe={(one, at) => `${one.name}${one.tid === null ? "" : ` ${one.tid}`}, ${duration(at - shown.value.begin)} from the left edge; Enter tells more`}
                />
            )}
            {box && <Box box={box} what={track === "block" ? "block" : "io"} onClose={() => setBox(null)} />}
        </section>
    );
}

function bandsOf(track: TrackName): readonly BandOf[] {
    const band = (of: TrackName, top: number, height: number): BandOf => {
        const levelFor = levelsOf(of);
        return { track: of, top, height, fetch: fetchTiles(of), ...(levelFor ? { levelFor } : {}) };
    };
    return [band(track, 2, HEIGHT[track] - 4)];
}

/** Filters that choose lanes. */
function whose(track: TrackName): Parameters {
    if (track === "cpus" || track === "block") return {};
    const { pid, tid, comm, w } = common.value;
    return { pid, tid, comm, w };
}

/** Of a box over some lanes, who they are; over all, nobody in particular. */
export function filterOf(track: TrackName, inside: readonly Lane[], all: number): Readonly<Record<string, string>> {
    if (inside.length === 0 || inside.length === all) return {};
    if (track === "block") return { dev: inside.map((lane) => lane.name).join(",") };
    if (track === "cpus") return { cpu: inside.map((lane) => String(lane.lane)).join(",") };
    const tids = inside.flatMap((lane) => (lane.tid === null ? [] : [String(lane.tid)]));
    return tids.length > 0 && tids.length <= 50 ? { tid: tids.join(",") } : {};
}

interface Wakeup {
    readonly ts_ns: Exact;
    readonly utid: number;
    readonly waker_utid: number | null;
    readonly context: string;
}

export function useArrows(track: TrackName, lanes: readonly Lane[]): readonly Arrow[] {
    const { begin, end } = shown.value;
    const isWanted = track === "states" && end - begin <= ARROW_WINDOW_NS && lanes.length > 0;
    const parameters = { w: `${offsetText(begin)}..${offsetText(end)}`, limit: ARROWS_MAX + 1 };
    const asked = useAnswer<{ readonly rows: readonly Wakeup[]; readonly cut: boolean }>("wakeups", isWanted ? parameters : null);
    return useMemo(() => {
        const rows = isWanted ? (asked.answer?.rows ?? []) : [];
        if (rows.length > ARROWS_MAX) return [];
        return rows.map((row) => ({
            at: sinceBegin(clock.value, row.ts_ns),
            from: row.context === "task" ? row.waker_utid : null,
            to: row.utid,
        }));
    }, [asked.answer, isWanted]);
}

const ITEM_OF: Readonly<Record<TrackName, readonly [string, string]>> = {
    states: ["states", "tid"],
    calls: ["syscalls", "tid"],
    cpus: ["cpu", "cpu"],
    locks: ["locks", "tid"],
    block: ["block", "dev"],
    samples: ["stacks", "tid"],
};

/** Asks for the exact interval at a moment of a lane. */
export async function chooseItem(track: TrackName, lane: Lane, at: number): Promise<void> {
    const from = api.value;
    const of = recording.value;
    if (!from || !of) return;
    hideMoment();
    if (lane.tid !== null) setOption("at", String(lane.tid), true);
    const [what, key] = ITEM_OF[track];
    const who = key === "tid" ? lane.tid : key === "cpu" ? lane.lane : lane.name;
    const moment: Span = { begin: at, end: at + 1 };
    const parameters = { rec: of.id, what, view: "log", w: `${offsetText(moment.begin)}..${offsetText(moment.end)}`, [key]: who ?? undefined, limit: 50 };
    const answer = (await from.json("table", parameters)) as Answer;
    const [table] = answer.tables;
    // Of several that overlap, the one that the pixel shows: the shortest.
    const rows = [...(table?.rows ?? [])].sort((a, b) => lengthOf(a) - lengthOf(b));
    const [row] = rows;
    if (table && row) choose({ id: typeof row["id"] === "string" ? row["id"] : null, row, table });
}

function lengthOf(row: Answer["tables"][number]["rows"][number]): number {
    const window = spanOf(row);
    return window ? window.end - window.begin : Number.POSITIVE_INFINITY;
}

function Twin({ track }: { track: TrackName }) {
    const [what] = ITEM_OF[track];
    const verb = track === "states" || track === "cpus" ? "usage" : track === "block" ? "usage" : "stats";
    return <AnswerView what={what} verb={verb} parameters={common.value} />;
}

export function Building({ done }: { done: number }) {
    return (
        <p class="pending" role="status">
            the time line is being prepared, once for this recording: <progress value={done} max={1} aria-label="prepared" /> {Math.round(done * 100)} %
        </p>
    );
}
