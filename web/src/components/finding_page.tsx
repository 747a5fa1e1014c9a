// The sentences and the drawing of a finding, as `whyslow explain` prints them.
import type { ComponentChildren } from "preact";

import { clock } from "../app";
import { openEvidence, placeOf } from "../evidence";
import { go } from "../state";
import { clamp, span, timeOfDay, withMargin } from "../times";
import { type Bar, timelineOf } from "../timeline";
import type { Actor, Advice, Finding } from "../types";
import { duration } from "../units";
import { shortened, title, visible } from "../visible";
import { CommandLine } from "./command_line";

/** The cause as a sentence, with the culprit as a link to what it did. */
export function Why({ finding }: { readonly finding: Finding }) {
    const part = finding.culprit === null ? null : finding.parts[finding.culprit];
    // Actors on another host are not in this recording: no link.
    const isHere = part && part.culprit.kind !== "own" && part.culprit.host === undefined;
    const found = isHere ? namedIn(finding.why, part.culprit) : null;
    if (!found || !part) return <p class="verdict why">{visible(finding.why)}</p>;
    const window = span(clock.value, finding.target.begin_ns, finding.target.end_ns);
    const show = () => go(placeOf(part.culprit, clamp(withMargin(window), clock.value.length)));
    const [from, to] = found;
    return (
        <p class="verdict why">
            {visible(finding.why.slice(0, from))}
            <button type="button" class="link strong culprit" onClick={show}>
                {visible(finding.why.slice(from, to))}
            </button>
            {visible(finding.why.slice(to))}
        </p>
    );
}

/** Longest name of a thread before its ids. */
const NAME_MAX = 64;

/** Where a sentence names an actor: `sync (pid 339)`, `reporter (tid 3, python3 pid 2)`; null if it does not. */
export function namedIn(sentence: string, actor: Actor): readonly [number, number] | null {
    const { name, pid, tid } = actor;
    const at = name ? sentence.indexOf(name) : -1;
    if (pid === null && tid === null) return at < 0 ? null : [at, at + name.length];
    const id = tid !== null && tid !== pid ? `tid ${tid}` : `pid ${pid ?? tid}`;
    const ids = new RegExp(`\\((?:[^()]*[ ,])?${id}\\b[^()]*\\)`).exec(sentence);
    if (!ids) return null;
    const to = ids.index + ids[0].length;
    const before = sentence.slice(0, ids.index).trimEnd();
    if (name && before.endsWith(name)) return [before.length - name.length, to];
    // A process is named by the thread that acted, the subject of the sentence.
    return before.length <= NAME_MAX && !/[.;:]\s/.test(before) ? [0, to] : [ids.index, to];
}

/** The slow operations and the confidence. */
export function Sentences({ finding }: { readonly finding: Finding }) {
    return (
        <dl class="sentences">
            <Sentence name="WHO">{visible(finding.who)}</Sentence>
            <Sentence name="SURE">
                <Sure finding={finding} />
            </Sentence>
        </dl>
    );
}

function Sentence({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
    return (
        <div>
            <dt>{name}</dt>
            <dd>{children}</dd>
        </div>
    );
}

/** The confidence as a badge, and what it is based on. */
function Sure({ finding }: { readonly finding: Finding }) {
    const { sure, confidence } = finding;
    const rest = sure.startsWith(`${confidence}: `) ? sure.slice(confidence.length + 2) : sure;
    return (
        <>
            <span class={`badge confidence-${confidence}`}>{confidence}</span> {visible(rest)}
        </>
    );
}

/** Longest description of a bar. */
const WHAT_LENGTH = 36;

/** Bars of the culprit and its victims on one axis, each with a link to its row. */
export function TimelineDrawing({ finding }: { readonly finding: Finding }) {
    const timeline = timelineOf(clock.value, finding.timeline);
    if (!timeline) return null;
    return (
        <div class="timeline">
            <ol aria-label="culprit and victims over time">
                {timeline.bars.map((bar, at) => (
                    <Row key={at} bar={bar} />
                ))}
            </ol>
            <p class="timeline-axis" aria-hidden="true">
                <span class="timeline-scale">
                    {timeline.ticks.map((tick) => (
                        <i key={tick.at} style={{ insetInlineStart: `${tick.at}%` }}>
                            {tick.text}
                        </i>
                    ))}
                </span>
            </p>
        </div>
    );
}

function Row({ bar }: { readonly bar: Bar }) {
    const { row, window, left, width } = bar;
    const { id } = row;
    const took = duration(window.end - window.begin);
    return (
        <li class={`role-${row.role}`}>
            <span class="when">{timeOfDay(clock.value, window.begin, 1e6)}</span>
            <bdi class="label" title={title(row.label)}>
                {visible(row.label)}
            </bdi>
            <bdi class="what" title={title(row.what)}>
                {shortened(visible(row.what), WHAT_LENGTH)}
            </bdi>
            <span class="timeline-track" aria-hidden="true">
                <i class={row.cut ? `cut-${row.cut}` : undefined} style={{ insetInlineStart: `${left}%`, width: `${width}%` }} />
            </span>
            <span class="long">
                {took}
                {row.cut && <span class="unseen"> at least: it extends beyond the recording</span>}
            </span>
            {id === null ? (
                <span />
            ) : (
                <button type="button" class="link evidence" onClick={() => openEvidence(id, window)}>
                    {visible(id)}
                </button>
            )}
        </li>
    );
}

const KINDS: readonly (readonly [Advice["kind"], string])[] = [
    ["now", "NOW"],
    ["fix", "FIX"],
    ["next", "NEXT"],
];

/** What to do at once, what to change for good, and what to look at next. */
export function AdviceList({ advice }: { readonly advice: readonly Advice[] }) {
    const groups = KINDS.map(([kind, name]) => ({ name, items: advice.filter((one) => one.kind === kind) }));
    if (advice.length === 0) return null;
    return (
        <dl class="sentences advice">
            {groups
                .filter(({ items }) => items.length > 0)
                .map(({ name, items }) => (
                    <Sentence key={name} name={name}>
                        {items.map((one, at) => (
                            <p key={at}>
                                {visible(one.text)} {one.command !== null && <CommandLine command={one.command} />}
                            </p>
                        ))}
                    </Sentence>
                ))}
        </dl>
    );
}
