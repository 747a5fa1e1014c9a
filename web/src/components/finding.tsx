import { useId, useState } from "preact/hooks";

import { clock } from "../app";
import { useAnswer } from "../query";
import { copy } from "../clipboard";
import { actorName, openEvidence, placeOf } from "../evidence";
import { go } from "../state";
import { clamp, span, timeOfDay, withMargin } from "../times";
import type { Part, Finding } from "../types";
import { duration, plural, ratio } from "../units";
import { title, visible } from "../visible";
import { HostBadge } from "./host";
import { Ladder } from "./ladder";

const CONFIDENCE: Readonly<Record<Finding["confidence"], string>> = {
    high: "confidence high",
    medium: "confidence medium",
    low: "confidence low",
};

/** A observation: a slow operation, where its time went, and the culprit. */
export function FindingCard({ finding, number, isOpen }: { readonly finding: Finding; readonly number: number; readonly isOpen: boolean }) {
    const [open, setOpen] = useState(isOpen);
    const body = useId();
    const { target, group } = finding;
    const window = span(clock.value, target.begin_ns, target.end_ns);
    const show = () =>
        go({
            page: "threads",
            window: clamp(withMargin(window), clock.value.length),
            selected: target.id,
            filter: {},
            options: target.actor.tid === null ? {} : { at: String(target.actor.tid) },
        });
    return (
        <article class="card finding" aria-label={`observation ${number}`}>
            <header>
                <button type="button" class="number" aria-expanded={open} aria-controls={body} onClick={() => setOpen(!open)}>
                    <span aria-hidden="true">{open ? "▾" : "▸"}</span> {number}
                </button>
                <Verdict finding={finding} />
            </header>
            <p class="badges">
                <span class={`badge confidence-${finding.confidence}`}>{CONFIDENCE[finding.confidence]}</span>
                <span class="badge" title={`grades: A observed, B most likely, C overlapped in time, D a guess`}>
                    grade {finding.culprit === null ? "–" : (finding.parts[finding.culprit]?.grade ?? "–")}
                </span>
                {group && group.count > 1 && (
                    <span class="badge">
                        {plural(group.count, "similar call")}, {duration(group.dur_ns_total)} in total
                    </span>
                )}
                <span class="quiet">
                    {timeOfDay(clock.value, window.begin)} · {duration(window.end - window.begin)}
                    {finding.unexplained_ns > 0 && ` · unexplained ${duration(finding.unexplained_ns)}`}
                </span>
            </p>
            <Shares parts={finding.parts} />
            <div id={body} hidden={!open}>
                {open && <Body finding={finding} onShow={show} />}
            </div>
        </article>
    );
}

/** The verdict, with the culprit as a link. */
function Verdict({ finding }: { finding: Finding }) {
    const part = finding.culprit === null ? null : finding.parts[finding.culprit];
    // Actors on another host are not in this recording: no link.
    const isHere = part && part.culprit.kind !== "own" && part.culprit.host === undefined;
    const name = isHere ? actorName(part.culprit) : null;
    const at = name === null ? -1 : finding.verdict.lastIndexOf(name);
    if (!part || name === null || at < 0) return <p class="verdict">{visible(finding.verdict)}</p>;
    const window = span(clock.value, finding.target.begin_ns, finding.target.end_ns);
    const show = () => go(placeOf(part.culprit, clamp(withMargin(window), clock.value.length)));
    return (
        <p class="verdict">
            {visible(finding.verdict.slice(0, at))}
            <button type="button" class="link strong culprit" onClick={show}>
                {visible(name)}
            </button>
            {visible(finding.verdict.slice(at + name.length))}
        </p>
    );
}

function Body({ finding, onShow }: { finding: Finding; onShow: () => void }) {
    return (
        <>
            <Ladder finding={finding} />
            <p class="actions">
                <button type="button" class="primary" onClick={onShow}>
                    show on the timeline
                </button>
                {finding.reproduce && (
                    <button type="button" onClick={() => void copy(finding.reproduce ?? "", "command")} title={title(finding.reproduce)}>
                        copy command
                    </button>
                )}
            </p>
            <Parts finding={finding} />
            <More finding={finding} />
        </>
    );
}

/** Parts shown before “more”. */
const PARTS_SHOWN = 8;

function Shares({ parts }: { parts: readonly Part[] }) {
    const shown = parts.filter((part) => part.share >= 0.005).slice(0, PARTS_SHOWN);
    const label = shown.map((part) => `${ratio(part.share)} ${part.mechanism}`).join(", ");
    return (
        <div class="shares" role="img" aria-label={`where the time went: ${label}`}>
            {shown.map((part, at) => (
                <i
                    key={at}
                    class={`share-${at % 8}`}
                    style={{ flexGrow: String(part.share) }}
                    title={title(`${ratio(part.share)} ${part.mechanism} ${actorName(part.culprit)}`)}
                />
            ))}
        </div>
    );
}

function Parts({ finding }: { finding: Finding }) {
    const [all, setAll] = useState(false);
    const shown = all ? finding.parts : finding.parts.slice(0, PARTS_SHOWN);
    const window = span(clock.value, finding.target.begin_ns, finding.target.end_ns);
    return (
        <section class="parts">
            <h2>Where the time went</h2>
            <div class="wide" tabIndex={0} role="region" aria-label="where the time went">
            <table>
                <thead>
                    <tr>
                        <th class="number" scope="col">time</th>
                        <th class="number" scope="col">share</th>
                        <th scope="col">grade</th>
                        <th scope="col">mechanism</th>
                        <th scope="col">culprit</th>
                        <th scope="col">evidence</th>
                    </tr>
                </thead>
                <tbody>
                    {shown.map((part, at) => (
                        <tr key={at} class={at === finding.culprit ? "culprit" : undefined}>
                            <td class="number">
                                <i class={`swatch share-${at % 8}`} aria-hidden="true" /> {duration(part.dur_ns)}
                            </td>
                            <td class="number">{ratio(part.share)}</td>
                            <td>{part.grade}</td>
                            <td>
                                <Mechanism id={part.mechanism} />
                                {part.root !== part.mechanism && <> ← <Mechanism id={part.root} /></>}
                            </td>
                            <td>
                                <HostBadge actor={part.culprit} /> <bdi>{visible(because(part))}</bdi>
                            </td>
                            <td>
                                {part.evidence.slice(0, part.culprit.host === undefined ? 3 : 0).map((evidence) => (
                                    <button type="button" class="link" key={evidence} onClick={() => openEvidence(evidence, window)}>
                                        {visible(evidence)}
                                    </button>
                                ))}
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
            </div>
            {finding.parts.length > PARTS_SHOWN && (
                <button type="button" class="link" onClick={() => setAll(!all)}>
                    {all ? "fewer" : `${finding.parts.length - PARTS_SHOWN} more`}
                </button>
            )}
        </section>
    );
}

function because(part: Part): string {
    const name = part.culprit.kind === "own" ? "the thread itself" : actorName(part.culprit);
    const thing = part.object ? ` ${part.object.kind} ${part.object.name}` : "";
    const call = part.activity && part.culprit.kind !== "own" ? ` in ${part.activity.call}` : "";
    const path = part.activity?.path && part.culprit.kind !== "own" ? `(${part.activity.path})` : "";
    return `${name}${thing}${call}${path}`;
}

interface Why {
    readonly id: string;
    readonly what: string;
    readonly recognised: string;
    readonly advice: readonly string[];
    readonly reference: string;
}

/** The name of a mechanism; a click shows its description. */
function Mechanism({ id }: { id: string }) {
    const [isOpen, setOpen] = useState(false);
    const query = useAnswer<Why>("why", isOpen ? { mechanism: id } : null);
    return (
        <span class="mechanism">
            <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
                {id}
            </button>
            {isOpen && query.answer && (
                <span class="aside" role="note">
                    {query.answer.what} <em>Recognised:</em> {query.answer.recognised} <em>See:</em> {query.answer.reference}
                </span>
            )}
        </span>
    );
}

function More({ finding }: { finding: Finding }) {
    const { alternatives, also, neighbours, missing, suggestions, caveats, across } = finding;
    return (
        <div class="more">
            <List name="Across hosts" items={(across ?? []).map((one) => one.summary)} />
            <List name="Other causes" items={alternatives.map((one) => one.summary)} />
            <List name="Suggestions" items={suggestions} />
            <List
                name="Other victims of this culprit"
                items={also.map((one) => `${one.what} by ${actorName(one.actor)}: ${plural(one.count, "call")}, longest ${duration(one.dur_ns)}`)}
            />
            <List name="Also busy at that time" items={neighbours.map((one) => `${actorName(one.actor)}: ${one.what}`)} />
            <List name="Not recorded" items={missing.map((one) => `${one.events} (${one.decides}): ${one.record_with}`)} />
            <List name="Caveats" items={caveats} />
        </div>
    );
}

function List({ name, items }: { name: string; items: readonly string[] }) {
    if (items.length === 0) return null;
    return (
        <section>
            <h3>{name}</h3>
            <ul>
                {items.map((item) => (
                    <li key={item}>{visible(item)}</li>
                ))}
            </ul>
        </section>
    );
}
