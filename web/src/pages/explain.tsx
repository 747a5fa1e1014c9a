import { useEffect, useState } from "preact/hooks";

import { clock, recording, recordings } from "../app";
import { type QueryState, useAnswer } from "../query";
import { Pending, Problem } from "../components/problem";
import { CommandLine } from "../components/command_line";
import { FindingCard } from "../components/finding";
import { actorName } from "../evidence";
import { explanation } from "../marks";
import { common, go, setOption, view } from "../state";
import { joinedOptions, recordCommand } from "../topic_states";
import { clamp, span, withMargin } from "../times";
import type { Explanation, Observation, RecordingInfo, Resource } from "../types";
import { ratio } from "../units";
import { visible } from "../visible";

/** Home page: what was slow, and the culprits. */
export function ExplainPage() {
    const across = hostsChosen();
    const parameters = explainParameters(common.value);
    const query = useAnswer<Explanation>("explain", across.length > 0 ? { ...parameters, across: across.join(",") } : parameters);
    const isWhole = !view.value.window && Object.keys(view.value.filter).length === 0 && across.length === 0;
    useEffect(() => {
        if (isWhole && query.answer && !query.isPending) explanation.value = query.answer;
    }, [query.answer, query.isPending, isWhole]);
    return (
        <>
            <OtherHosts chosen={across} />
            <Explained query={query} />
        </>
    );
}

function Explained({ query }: { readonly query: QueryState<Explanation> }) {
    if (query.failure) return <Problem failure={query.failure} />;
    if (!query.answer) return <Pending what="Searching for slow operations and their causes…" />;
    return <ExplanationView explanation={query.answer} isStale={query.isPending} />;
}

/** The other recordings. */
function others(): readonly RecordingInfo[] {
    const all = recordings.value?.recordings ?? [];
    return all.filter((one) => one.id !== recording.value?.id);
}

/** Ids of the recordings of other hosts that findings may continue in. */
function hostsChosen(): readonly string[] {
    const words = (view.value.options["across"] ?? "").split(",");
    return others().flatMap((one) => (words.includes(one.id) ? [one.id] : []));
}

/** Selects recordings of hosts that this one waited for. */
function OtherHosts({ chosen }: { readonly chosen: readonly string[] }) {
    const all = others();
    if (all.length === 0) return null;
    const choose = (id: string, isOn: boolean) => {
        const left = chosen.filter((one) => one !== id);
        const next = isOn ? [...left, id] : left;
        setOption("across", next.length > 0 ? next.join(",") : null);
    };
    return (
        <fieldset class="hosts">
            <legend>Follow waits to other hosts</legend>
            {all.map((one) => (
                <label key={one.id}>
                    <input
                        type="checkbox"
                        checked={chosen.includes(one.id)}
                        onChange={(event) => choose(one.id, event.currentTarget.checked)}
                    />{" "}
                    {visible(one.host === null ? one.name : `${one.host} (${one.name})`)}
                </label>
            ))}
        </fieldset>
    );
}

/** The filters that explain accepts: window, process, thread and device. */
export function explainParameters(from: Readonly<Record<string, string>>): Record<string, string> {
    const known = ["w", "pid", "tid", "dev"];
    return Object.fromEntries(Object.entries(from).filter(([key]) => known.includes(key)));
}

interface ViewProps {
    readonly explanation: Explanation;
    readonly isStale: boolean;
    /** Shown if nothing was found, instead of the text for a whole recording. */
    readonly none?: string;
}

export function ExplanationView({ explanation: shown, isStale, none }: ViewProps) {
    const { findings, observations, patterns, caveats, tracer_share: share } = shown;
    const isQuiet = findings.length + observations.length + patterns.length === 0;
    return (
        <div class={isStale ? "explanation stale" : "explanation"}>
            {shown.judged === "cannot_tell" ? (
                <CannotTell reasons={shown.reasons ?? []} />
            ) : (
                isQuiet && (none === undefined ? <NothingFound /> : <p class="quiet none">{none}</p>)
            )}
            {findings.map((finding, at) => (
                <FindingCard key={`${finding.target.id}-${at}`} finding={finding} number={at + 1} isOpen={at === 0} />
            ))}
            {observations.length > 0 && <h2>{findings.length > 0 ? "Other observations" : "Findings"}</h2>}
            {observations.map((observation) => (
                <ObservationCard key={observation.summary} observation={observation} />
            ))}
            {patterns.length > 0 && <h2>Patterns</h2>}
            {patterns.map((pattern) => (
                <article class="card" key={pattern.summary}>
                    <p class="verdict">{visible(pattern.summary)}</p>
                    <ul>
                        {pattern.hints.map((hint) => (
                            <li key={hint}>{visible(hint)}</li>
                        ))}
                    </ul>
                </article>
            ))}
            <Resources of={shown.fine} />
            <ul class="caveats">
                {caveats.map((caveat) => (
                    <li key={caveat}>{visible(caveat)}</li>
                ))}
                {share !== null && share >= 0.01 && <li>the recorder used {ratio(share)} of a CPU</li>}
            </ul>
        </div>
    );
}

/** What was judged independent of the findings: first what was high. */
function Resources({ of }: { readonly of: readonly Resource[] }) {
    const texts = (states: readonly Resource["state"][]) => of.filter((one) => states.includes(one.state)).map((one) => visible(one.summary)).join(", ");
    const [high, fine, missing] = [texts(["high"]), texts(["fine", "none_happened"]), texts(["not_recorded"])];
    const options = of.flatMap((one) => (one.state === "not_recorded" ? (one.record_with ?? []) : []));
    const command = recordCommand(joinedOptions(options));
    if (of.length === 0) return null;
    return (
        <ul class="resources" aria-label="resources">
            {high && (
                <li class="high">
                    <b>high:</b> {high}
                </li>
            )}
            {fine && (
                <li>
                    <b>fine:</b> {fine}
                </li>
            )}
            {missing && (
                <li class="quiet">
                    <b>not judged:</b> {missing} {command !== null && <CommandLine command={command} />}
                </li>
            )}
        </ul>
    );
}

function CannotTell({ reasons }: { readonly reasons: NonNullable<Explanation["reasons"]> }) {
    return (
        <article class="card">
            <p class="verdict">Cannot tell what was slow.</p>
            {reasons.map((reason) => (
                <p key={reason.id}>{visible(`${reason.summary} (${reason.next})`)}</p>
            ))}
        </article>
    );
}

function NothingFound() {
    return (
        <article class="card">
            <p class="verdict">Nothing stands out in {recording.value ? visible(recording.value.name) : "this recording"}.</p>
            <p>
                No call took much longer than similar calls, and no thread waited long for a CPU. If something was slow all the time,
                drag over its thread in a chart and choose “explain this box”.
            </p>
        </article>
    );
}

function ObservationCard({ observation }: { observation: Observation }) {
    const [isOpen, setOpen] = useState(false);
    const show = () => {
        const window = clamp(withMargin(span(clock.value, observation.begin_ns, observation.end_ns)), clock.value.length);
        const { pid } = observation.culprit;
        const isDevice = observation.object?.kind === "device";
        const page = isDevice ? "block" : observation.kind === "temporary_files" ? "files" : "io";
        const filter = isDevice ? { dev: observation.object?.name ?? "" } : pid === null ? {} : { pid: String(pid) };
        go({ page, window, filter, options: {} });
    };
    return (
        <article class="card">
            <p class="verdict">
                <button type="button" class="link strong culprit" onClick={show}>
                    {visible(actorName(observation.culprit))}
                </button>{" "}
                {visible(withoutName(observation))}
            </p>
            <p class="actions">
                <button type="button" onClick={show}>
                    show
                </button>
                <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
                    suggestions
                </button>
            </p>
            {isOpen && (
                <ul>
                    {observation.suggestions.map((advice) => (
                        <li key={advice}>{visible(advice)}</li>
                    ))}
                </ul>
            )}
        </article>
    );
}

/** The sentence without its leading name, which is shown as a link. */
function withoutName(observation: Observation): string {
    const name = actorName({ ...observation.culprit, tid: observation.culprit.pid });
    return [actorName(observation.culprit), name].reduce(
        (text, name) => (text.startsWith(name) ? text.slice(name.length).trimStart() : text),
        observation.summary,
    );
}
