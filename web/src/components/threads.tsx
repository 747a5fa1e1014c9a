import { useEffect, useMemo, useState } from "preact/hooks";

import { ApiError } from "../api";
import { announce, clock, recording, shown } from "../app";
import { type BandOf, type Lane, sampleValue, TrackChart, type TrackName } from "../charts/index";
import { marks } from "../marks";
import { common, go, setOption, view } from "../state";
import { theme } from "../theme";
import {
    threadParameters,
    chosenThreads,
    cursorTime,
    followed,
    hasRows,
    keyOf,
    lastCursor,
    linksOf,
    highlighted,
    nameOf,
    nextEvent,
    patternOf,
    dumpTime,
    showDump,
    type Threads,
    useGaps,
    useThreads,
    useWaits,
} from "../threads";
import { fetchTiles, levelsOf } from "../tracks";
import { duration } from "../units";
import { AnswerView } from "./answer";
import { Box, type BoxOf } from "./box";
import { Building, chooseItem, filterOf, useArrows } from "./lanes";
import { Legend, SampleLegend } from "./legend";
import { Pending, Problem } from "./problem";

const HEIGHT = 430;

/** The thread chart: kernel thread states, samples, and lock waits. */
export function ThreadLanes() {
    const threads = useThreads();
    const of = recording.value;
    if (of?.tiles.state === "failed") return <Problem failure={new ApiError(of.tiles.error ?? "cannot build the timeline", 500)} />;
    if (of?.tiles.state === "building") return <Building done={of.tiles.done ?? 0} />;
    if (threads.failure) return <Problem failure={threads.failure} />;
    if (threads.isPending && threads.lanes.length === 0) return <Pending what="Loading threads…" />;
    if (threads.lanes.length === 0) return <NoThreads />;
    return <Chart threads={threads} />;
}

function NoThreads() {
    const isCounted = hasRows("stack_sample") && view.value.window === null;
    return <p class="quiet none">{isCounted ? "these samples have no timestamps: no timeline, only the flame graph below" : "no threads in this window"}</p>;
}

function Chart({ threads }: { readonly threads: Threads }) {
    const { options, baseline } = view.value;
    const [failure, setFailure] = useState<ApiError | null>(null);
    const [box, setBox] = useState<BoxOf | null>(null);
    const [isTable, setTable] = useState(false);
    const isLinked = options["links"] === "on";
    const pattern = patternOf(options["threads"] ?? "");
    const lanes = useMemo(() => matching(threads.lanes, pattern), [threads.lanes, options["threads"]]);
    const bands = useMemo(() => bandsOf(threads), [threads.states?.lanes.length, threads.samples?.lanes.length, recording.value?.digest]);
    const waits = useWaits(threads.lanes, isLinked);
    const gaps = useGaps(threads.lanes);
    const links = useMemo(() => (isLinked ? linksOf(waits, gaps) : []), [isLinked, waits, gaps]);
    const stops = useMemo(() => gaps.filter((one) => one.kind === "process_stopped"), [gaps]);
    const arrows = useArrows(hasRows("thread_state") && !isLinked ? "states" : "samples", threads.lanes);
    const chosen = useMemo(() => new Set(lanes.filter((lane) => highlighted.value.has(nameOf(lane))).map((lane) => lane.lane)), [lanes, highlighted.value]);
    useEffect(() => {
        chosenThreads.value = pattern instanceof RegExp ? threadParameters(lanes, threads.lanes.length, pattern) : {};
        return () => {
            chosenThreads.value = {};
        };
    }, [lanes, options["threads"]]);
    const active = lanes.find((one) => keyOf(one) === options["at"])?.lane ?? null;
    const isSampled = (threads.samples?.lanes.length ?? 0) > 0;
    const follow = (lane: Lane, at: number): number | null => {
        const to = isLinked ? followed(waits, gaps, lane, at) : null;
        if (!to) return null;
        announce(to.text);
        showDump(to.at, to.lane);
        return to.at;
    };
    const describe = (lane: Lane, at: number, values: ReadonlyMap<TrackName, number>) =>
        [nameOf(lane), ...whatOf(threads, values), ...waits.filter((one) => one.lane === lane && one.begin <= at && at < one.end).map((one) => `waits for ${one.lock}${one.holder ? `, held by ${nameOf(one.holder)} (${one.confidence} confidence)` : ""}`), `${duration(at - shown.value.begin)} from the left edge; Enter shows details`].join(", ");
    return (
        <section class="lanes">
            <header>
                {threads.states && threads.states.lanes.length > 0 && <Legend track="states" groups={threads.states.groups} />}
                {isSampled && <SampleLegend />}
            </header>
            <Controls pattern={pattern} count={lanes.length} threads={threads} isTable={isTable} onTable={setTable} />
            {failure && <Problem failure={failure} />}
            {isTable ? (
                <Twin isLinked={isLinked} />
            ) : lanes.length === 0 ? (
                <p class="quiet none">no thread name matches</p>
            ) : (
                <TrackChart
                    label="threads over time"
                    clock={clock.value}
                    window={shown.value}
                    lanes={lanes}
                    bands={bands}
                    rowHeight={rowHeight(threads)}
                    height={HEIGHT}
                    baseline={baseline}
                    marks={marks.value}
                    arrows={arrows}
                    groupBy={options["pool"] === "on" ? "pool" : "process"}
                    links={links}
                    stops={stops}
                    pinned={dumpTime()}
                    chosen={chosen}
                    active={active}
                    version={`${recording.value?.id} ${recording.value?.digest ?? ""}`}
                    theme={theme.version.value}
                    onWindow={(window, isDone) => go({ window }, !isDone)}
                    onAll={() => go({ window: null })}
                    onBox={(drawn) => setBox(drawn ? { window: drawn.range, filter: filterOf("states", drawn.lanes, threads.lanes.length) } : null)}
                    onBaseline={(window) => go({ baseline: window })}
                    onItem={(lane, at, track) => (track === "samples" ? showDump(at, lane) : void chooseItem(track, lane, at))}
                    onFollow={follow}
                    {...(isSampled ? { onDump: (at: number) => showDump(at, null) } : {})}
                    nextOn={(lane, at, isBack) => nextEvent(waits, gaps, lane, at, isBack)}
                    onCursor={(at) => (lastCursor.value = at)}
                    onFailure={(error) => setFailure(error instanceof ApiError ? error : new ApiError(String(error), 0))}
                    describe={describe}
                />
            )}
            {box && <Box box={box} what="io" onClose={() => setBox(null)} />}
        </section>
    );
}

interface ControlsProps {
    readonly pattern: RegExp | null | "wrong";
    readonly count: number;
    readonly threads: Threads;
    readonly isTable: boolean;
    readonly onTable: (isTable: boolean) => void;
}

function Controls({ pattern, count, threads, isTable, onTable }: ControlsProps) {
    const { options } = view.value;
    const toggle = (key: string) => setOption(key, options[key] === "on" ? null : "on", true);
    const dump = () => showDump(cursorTime(), null);
    return (
        <p class="actions lanes-tools">
            <label>
                <span class="unseen">threads whose names match</span>
                <input
                    type="search"
                    placeholder="threads (regex)"
                    value={options["threads"] ?? ""}
                    aria-invalid={pattern === "wrong"}
                    onInput={(event) => setOption("threads", event.currentTarget.value || null, true)}
                />
            </label>
            <span class="quiet" aria-live="polite">
                {pattern === "wrong" && "not a valid regular expression"}
                {pattern instanceof RegExp && `${count} of ${threads.lanes.length}`}
                {threads.hidden > 0 && ` busiest ${threads.lanes.length} threads; filter to show the other ${threads.hidden}`}
            </span>
            <button type="button" aria-pressed={options["pool"] === "on"} onClick={() => toggle("pool")}>
                by pool
            </button>
            {(hasRows("lock_wait") || hasRows("sample_gap")) && (
                <button type="button" aria-pressed={options["links"] === "on"} onClick={() => toggle("links")} title="n: next wait of the row; Enter: go to the lock holder">
                    lock holders
                </button>
            )}
            {hasRows("stack_sample") && (
                <button type="button" onClick={dump} title="d in the chart">
                    all stacks at the cursor
                </button>
            )}
            <button type="button" class="small" aria-pressed={isTable} onClick={() => onTable(!isTable)}>
                {isTable ? "chart" : "table"}
            </button>
        </p>
    );
}

function matching(lanes: readonly Lane[], pattern: RegExp | null | "wrong"): readonly Lane[] {
    if (!(pattern instanceof RegExp)) return lanes;
    return lanes.filter((lane) => pattern.test(nameOf(lane)) || (lane.process !== null && pattern.test(lane.process)));
}

function rowHeight(threads: Threads): number {
    const hasStates = (threads.states?.lanes.length ?? 0) > 0;
    const hasSamples = (threads.samples?.lanes.length ?? 0) > 0;
    if (!hasSamples) return 24;
    return hasStates ? 36 : 20;
}

function bandsOf(threads: Threads): readonly BandOf[] {
    const band = (track: TrackName, top: number, height: number): BandOf => {
        const levelFor = levelsOf(track);
        return { track, top, height, fetch: fetchTiles(track), ...(levelFor ? { levelFor } : {}) };
    };
    const hasStates = (threads.states?.lanes.length ?? 0) > 0;
    const hasSamples = (threads.samples?.lanes.length ?? 0) > 0;
    if (!hasStates && hasSamples) return [band("samples", 3, 14)];
    const kernel = [band("states", 3, 12), band("calls", 17, 5)];
    return hasSamples ? [...kernel, band("samples", 24, 9)] : kernel;
}

const CODE: readonly string[] = ["", " in the kernel", " in native code", " in managed code"];
const GAPS: Readonly<Record<string, string>> = {
    kernel_wait: "sampling gap: kernel wait (inferred)",
    page_fault: "sampling gap: page fault (inferred)",
    sampler_late: "sampling gap: sampler late",
    cpu_starved: "sampling gap: no CPU available",
};

/** Description of the strips at a time. */
function whatOf(threads: Threads, values: ReadonlyMap<TrackName, number>): string[] {
    const state = threads.states?.values[values.get("states") ?? -1];
    const sampled = values.get("samples");
    if (sampled === undefined) return state ? [state] : [];
    const { place, code } = sampleValue(sampled);
    const word = threads.samples?.values[place] ?? "";
    const sample = GAPS[word] ?? `sampled ${word}${CODE[code] ?? ""}`;
    return state ? [state, sample] : [sample];
}

/** The same as tables. */
function Twin({ isLinked }: { readonly isLinked: boolean }) {
    return (
        <>
            {hasRows("thread_state") && <AnswerView what="states" verb="usage" parameters={common.value} />}
            {hasRows("stack_sample") && <AnswerView what="stacks" verb="usage" parameters={common.value} rowsShown={12} />}
            {hasRows("sample_gap") && <AnswerView what="threads" verb="gaps" parameters={common.value} rowsShown={12} />}
            {isLinked && hasRows("lock_wait") && <AnswerView what="locks" verb="top" parameters={{ limit: 100, ...common.value }} rowsShown={12} />}
        </>
    );
}
