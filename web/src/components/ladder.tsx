import { clock } from "../app";
import { actorName, openEvidence } from "../evidence";
import { sinceBegin, type Span, span, timeOfDay } from "../times";
import type { Hop, Finding } from "../types";
import { duration } from "../units";
import { shortened, title, visible } from "../visible";
import { HostBadge } from "./host";

const WIDTH = 1000;
const LEFT = 190;
const LANE = 34;
const TOP = 22;
const NAME_LENGTH = 26;
const LABEL_LENGTH = 46;

interface Lane {
    readonly name: string;
    readonly hops: readonly { readonly hop: Hop; readonly window: Span; readonly at: number }[];
    readonly activity: Span | null;
}

/** The chain from the slow operation to the culprit, each step on its actor's lane, to scale. */
export function Ladder({ finding }: { readonly finding: Finding }) {
    const whole = span(clock.value, finding.target.begin_ns, finding.target.end_ns);
    const margin = Math.max((whole.end - whole.begin) * 0.04, 1);
    const frame = { begin: whole.begin - margin, end: whole.end + margin };
    const lanes = lanesOf(finding);
    const x = (ns: number) => LEFT + ((Math.min(Math.max(ns, frame.begin), frame.end) - frame.begin) / (frame.end - frame.begin)) * (WIDTH - LEFT);
    const height = TOP + (lanes.length + 1) * LANE + 8;
    const flat = lanes.flatMap((lane, row) => lane.hops.map((one) => ({ ...one, row: row + 1 }))).sort((a, b) => a.at - b.at);
    return (
        <section class="ladder" aria-label="causal chain on a timeline">
            <svg viewBox={`0 0 ${WIDTH} ${height}`} aria-hidden="true">
                <Axis frame={frame} whole={whole} x={x} height={height} />
                <Name row={0} text="slow" isStrong />
                <rect class="target" x={x(whole.begin)} y={TOP + 6} width={Math.max(x(whole.end) - x(whole.begin), 2)} height={LANE - 14} />
                <text class="label" x={x(whole.begin) + 6} y={TOP + 22}>
                    {shortened(visible(finding.target.what), 92)}
                </text>
                {lanes.map((lane, at) => (
                    <g key={at}>
                        <Name row={at + 1} text={lane.name} isStrong={at === lanes.length - 1} />
                        {lane.activity && (
                            <rect
                                class="activity"
                                x={x(lane.activity.begin)}
                                y={TOP + (at + 1) * LANE + 26}
                                width={Math.max(x(lane.activity.end) - x(lane.activity.begin), 2)}
                                height={3}
                            />
                        )}
                    </g>
                ))}
                {flat.map(({ hop, window, row }, at) => {
                    const next = flat[at + 1];
                    return (
                        <g key={at}>
                            <rect
                                class={`hop share-${row % 8}`}
                                x={x(window.begin)}
                                y={TOP + row * LANE + 6}
                                width={Math.max(x(window.end) - x(window.begin), 2)}
                                height={LANE - 14}
                            >
                                <title>{title(`${hop.what}: ${hop.mechanism}, ${duration(window.end - window.begin)}`)}</title>
                            </rect>
                            <BarText hop={hop} left={x(window.begin)} width={x(window.end) - x(window.begin)} row={row} />
                            {next && next.row !== row && (
                                <path class="step" d={`M${x(next.window.begin) + 1} ${TOP + row * LANE + LANE - 8}V${TOP + next.row * LANE + 6}`} />
                            )}
                        </g>
                    );
                })}
            </svg>
            <ol>
                {flat.map(({ hop, window }, at) => (
                    <li key={at}>
                        <span class="when">{timeOfDay(clock.value, window.begin)}</span>
                        <span class="long">{duration(window.end - window.begin)}</span>
                        <span class="what">
                            <b>
                                <bdi>{visible(actorName(hop.actor))}</bdi>
                            </b>{" "}
                            <HostBadge actor={hop.actor} /> {visible(hop.what)}: {hop.mechanism}
                            {hop.object && `, ${visible(`${hop.object.kind} ${hop.object.name}`)}`}
                            {hop.activity && (
                                <>
                                    , in <bdi>{visible(callText(hop))}</bdi>
                                </>
                            )}{" "}
                            <span class="badge">grade {hop.grade}</span>
                            {hop.evidence && hop.actor.host === undefined && (
                                <button type="button" class="link evidence" onClick={() => openEvidence(hop.evidence, window)}>
                                    {visible(hop.evidence)}
                                </button>
                            )}
                        </span>
                        {hop.stack.length > 0 && <Stack frames={hop.stack} />}
                    </li>
                ))}
            </ol>
        </section>
    );
}

/** Approximate width of a label character. */
const CHARACTER = 6.6;

function BarText({ hop, left, width, row }: { hop: Hop; left: number; width: number; row: number }) {
    const text = `${hop.mechanism}${hop.object ? `, ${hop.object.kind} ${hop.object.name}` : ""}`;
    const room = Math.floor((width - 12) / CHARACTER);
    if (room < 8) return null;
    return (
        <text class="label in-bar" x={left + 6} y={TOP + row * LANE + 22}>
            {shortened(visible(text), room)}
        </text>
    );
}

function lanesOf(finding: Finding): Lane[] {
    const lanes: (Lane & { hops: { hop: Hop; window: Span; at: number }[] })[] = [];
    finding.chain.forEach((hop, at) => {
        const { host } = hop.actor;
        const name = host === undefined ? actorName(hop.actor) : `${host}: ${actorName(hop.actor)}`;
        const window = span(clock.value, hop.begin_ns, hop.end_ns);
        const known = lanes.find((lane) => lane.name === name);
        if (known) {
            known.hops.push({ hop, window, at });
            return;
        }
        const { activity } = hop;
        const lasted =
            activity && activity.end_ns !== null
                ? { begin: sinceBegin(clock.value, activity.begin_ns), end: sinceBegin(clock.value, activity.end_ns) }
                : null;
        lanes.push({ name, hops: [{ hop, window, at }], activity: lasted });
    });
    return lanes;
}

function callText(hop: Hop): string {
    const { activity } = hop;
    if (!activity) return "";
    return activity.path ? `${activity.call}(${shortened(activity.path, LABEL_LENGTH * 2)})` : activity.call;
}

function Name({ row, text, isStrong }: { row: number; text: string; isStrong: boolean }) {
    return (
        <text class={isStrong ? "name strong" : "name"} x={LEFT - 10} y={TOP + row * LANE + 22} text-anchor="end">
            {shortened(visible(text), NAME_LENGTH)}
        </text>
    );
}

function Axis({ frame, whole, x, height }: { frame: Span; whole: Span; x: (ns: number) => number; height: number }) {
    const middle = (whole.begin + whole.end) / 2;
    const step = (frame.end - frame.begin) / 1000;
    return (
        <g class="axis">
            {[whole.begin, middle, whole.end].map((ns, at) => (
                <g key={at}>
                    <line x1={x(ns)} x2={x(ns)} y1={TOP - 4} y2={height} />
                    <text x={x(ns)} y={TOP - 8} text-anchor={at === 0 ? "start" : at === 1 ? "middle" : "end"}>
                        {at === 0 ? timeOfDay(clock.value, ns, step) : `+${duration(ns - whole.begin)}`}
                    </text>
                </g>
            ))}
        </g>
    );
}

function Stack({ frames }: { frames: readonly string[] }) {
    return (
        <details class="stack">
            <summary>stack</summary>
            <ol>
                {frames.map((frame, at) => (
                    <li key={at}>
                        <bdi>{visible(frame)}</bdi>
                    </li>
                ))}
            </ol>
        </details>
    );
}
