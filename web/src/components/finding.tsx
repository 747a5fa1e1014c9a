import { useId, useState } from "preact/hooks";

import { clock } from "../app";
import { useAnswer } from "../query";
import { copy } from "../clipboard";
import { actorName, openEvidence } from "../evidence";
import { go } from "../state";
import { clamp, span, timeOfDay, withMargin } from "../times";
import type { Part, Finding } from "../types";
import { duration, plural, ratio } from "../units";
import { title, visible } from "../visible";
import { CommandLine } from "./command_line";
import { HostBadge } from "./host";
import { AdviceList, Sentences, TimelineDrawing, Why } from "./finding_page";
import { Ladder } from "./ladder";

/** A finding: why an operation was slow, the culprit, and what to do. Its evidence is folded. */
export function FindingCard({ finding, number, isOpen }: { readonly finding: Finding; readonly number: number; readonly isOpen: boolean }) {
    const [open, setOpen] = useState(isOpen);
    const body = useId();
    const { target } = finding;
    const window = span(clock.value, target.begin_ns, target.end_ns);
    const show = () =>
        go({
            page: "threads",
            window: clamp(withMargin(window), clock.value.length),
            selected: null,
            filter: {},
            options: target.actor.tid === null ? {} : { at: String(target.actor.tid) },
        });
    return (
        <article class="card finding" aria-label={`finding ${number}`}>
            <header>
                <button type="button" class="number" aria-expanded={open} aria-controls={body} onClick={() => setOpen(!open)}>
                    <span aria-hidden="true">{open ? "▾" : "▸"}</span> {number}
                </button>
                <Why finding={finding} />
            </header>
            <div id={body} hidden={!open}>
                {open && <Body finding={finding} onShow={show} />}
            </div>
        </article>
    );
}

function Body({ finding, onShow }: { finding: Finding; onShow: () => void }) {
    return (
        <>
            <Sentences finding={finding} />
            <TimelineDrawing finding={finding} />
            <AdviceList advice={finding.advice} />
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
            <details class="details">
                <summary>Evidence and details</summary>
                <p class="verdict">{visible(finding.verdict)}</p>
                <Badges finding={finding} />
                <Shares parts={finding.parts} />
                <Ladder finding={finding} />
                <Parts finding={finding} />
                <More finding={finding} />
            </details>
        </>
    );
}

function Badges({ finding }: { finding: Finding }) {
    const { target, group, culprit } = finding;
    const window = span(clock.value, target.begin_ns, target.end_ns);
    return (
        <p class="badges">
            <span class="badge" title={`grades: A observed, B most likely, C overlapped in time`}>
                grade {culprit === null ? "–" : (finding.parts[culprit]?.grade ?? "–")}
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

interface MechanismInfo {
    readonly id: string;
    readonly what: string;
    readonly recognised: string;
    readonly advice: readonly string[];
    readonly reference: string;
}

/** The name of a mechanism; a click shows its description. */
function Mechanism({ id }: { id: string }) {
    const [isOpen, setOpen] = useState(false);
    const query = useAnswer<MechanismInfo>("why", isOpen ? { mechanism: id } : null);
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
            <NotRecorded missing={missing} />
            <List name="Caveats" items={caveats} />
        </div>
    );
}

function NotRecorded({ missing }: { missing: Finding["missing"] }) {
    if (missing.length === 0) return null;
    return (
        <section>
            <h3>Not recorded</h3>
            <ul>
                {missing.map((one) => (
                    <li key={one.events}>
                        {visible(`${one.events} (${one.decides})`)} <CommandLine command={one.record_with} />
                    </li>
                ))}
            </ul>
        </section>
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
