import { useMemo, useState } from "preact/hooks";

import { ApiError, type Parameters } from "../api";
import { api, clock, recording, shown } from "../app";
import { useAnswer } from "../query";
import { type Arrow, type BandOf, type Lane, TrackChart, type TrackName } from "../charts/index";
import type { Exact } from "../exact";
import { LANES_MAX } from "../limits";
import { marks } from "../marks";
import { choose } from "../selection";
import { common, go, setOption, view } from "../state";
import { theme } from "../theme";
import { offsetText, sinceBegin, type Span } from "../times";
import { hideDump } from "../threads";
import { fetchTiles, lanesOf, levelsOf, type Track } from "../tracks";
import type { Answer } from "../types";
import { duration } from "../units";
import { AnswerView, spanOf } from "./answer";
import { Box, type BoxOf } from "./box";
import { Legend } from "./legend";
import { Pending, Problem } from "./problem";

/** Arrows are distinguishable only in windows up to this length and with at most this many wakeups. */
const ARROW_WINDOW_NS = 2e9;
const ARROWS_MAX = 300;

const HEIGHT: Readonly<Record<TrackName, number>> = { states: 24, calls: 24, cpus: 22, locks: 18, block: 30, samples: 20 };

/** Activity of threads, CPUs, devices or locks, one lane each. */
export function LaneChart({ track }: { readonly track: TrackName }) {
    const [failure, setFailure] = useState<ApiError | null>(null);
    const [box, setBox] = useState<BoxOf | null>(null);
    const [isTable, setTable] = useState(false);
    const of = recording.value;
    const isReady = of?.tiles.state === "ready" || api.value?.isReport === true;
    const query = useAnswer<{ readonly tracks: readonly Track[] }>("tracks", isReady ? { track, limit: LANES_MAX, ...laneFilter(track) } : null);
    const info = query.answer?.tracks[0] ?? null;
    const lanes = useMemo(() => (info ? lanesOf(info) : []), [info]);
    const bands = useMemo(() => bandsOf(track), [track, of?.digest]);
    const active = view.value.options["at"];
    const lane = lanes.find((one) => (one.tid === null ? one.name : String(one.tid)) === active)?.lane ?? null;
    if (of?.tiles.state === "failed") return <Problem failure={new ApiError(of.tiles.error ?? "cannot build the timeline", 500)} />;
    if (!isReady) return <Building done={of?.tiles.done ?? 0} />;
    if (query.failure) return <Problem failure={query.failure} />;
    if (!info) return <Pending what="Loading lanes…" />;
    if (lanes.length === 0) return <p class="quiet none">no lanes in this window</p>;
    const onItem = (one: Lane, at: number) => void chooseItem(track, one, at);
    return (
        <section class="lanes">
            <header>
                <Legend track={track} groups={info.groups} />
                {info.total > lanes.length && (
                    <span class="quiet">
                        the busiest {lanes.length} of {info.total}; use a filter to show others
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
                    describe={(one, at) => `${one.name}${one.tid === null ? "" : ` ${one.tid}`}, ${duration(at - shown.value.begin)} from the left edge; Enter shows details`}
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

/** Filters that select lanes. */
function laneFilter(track: TrackName): Parameters {
    if (track === "cpus" || track === "block") return {};
    const { pid, tid, comm, w } = common.value;
    return { pid, tid, comm, w };
}

/** Filter for the lanes in a box; empty if it covers all lanes. */
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
    const query = useAnswer<{ readonly rows: readonly Wakeup[]; readonly cut: boolean }>("wakeups", isWanted ? parameters : null);
    return useMemo(() => {
        const rows = isWanted ? (query.answer?.rows ?? []) : [];
        if (rows.length > ARROWS_MAX) return [];
        return rows.map((row) => ({
            at: sinceBegin(clock.value, row.ts_ns),
            from: row.context === "task" ? row.waker_utid : null,
            to: row.utid,
        }));
    }, [query.answer, isWanted]);
}

const ITEM_OF: Readonly<Record<TrackName, readonly [string, string]>> = {
    states: ["states", "tid"],
    calls: ["syscalls", "tid"],
    cpus: ["cpu", "cpu"],
    locks: ["locks", "tid"],
    block: ["block", "dev"],
    samples: ["stacks", "tid"],
};

/** Requests and selects the exact interval of a lane at a time. */
export async function chooseItem(track: TrackName, lane: Lane, at: number): Promise<void> {
    const from = api.value;
    const of = recording.value;
    if (!from || !of) return;
    hideDump();
    if (lane.tid !== null) setOption("at", String(lane.tid), true);
    const [what, key] = ITEM_OF[track];
    const subject = key === "tid" ? lane.tid : key === "cpu" ? lane.lane : lane.name;
    const instant: Span = { begin: at, end: at + 1 };
    const parameters = { rec: of.id, what, view: "log", w: `${offsetText(instant.begin)}..${offsetText(instant.end)}`, [key]: subject ?? undefined, limit: 50 };
    const answer = (await from.json("table", parameters)) as Answer;
    const [table] = answer.tables;
    // Of overlapping intervals the shortest, which is the one drawn in the pixel.
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
            Building the timeline, once per recording: <progress value={done} max={1} aria-label="progress" /> {Math.round(done * 100)} %
        </p>
    );
}
