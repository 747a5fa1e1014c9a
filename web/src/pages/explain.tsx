import { useEffect, useState } from "preact/hooks";

import { clock, recording, recordings } from "../app";
import { type Asked, useAnswer } from "../ask";
import { Pending, Problem } from "../components/problem";
import { StoryCard } from "../components/story";
import { actorName } from "../evidence";
import { explanation } from "../marks";
import { common, go, setOption, view } from "../state";
import { clamp, span, withMargin } from "../times";
import type { Explanation, Finding, RecordingInfo } from "../types";
import { ratio } from "../units";
import { visible } from "../visible";

/** Home: what was slow, and who did it. */
export function ExplainPage() {
    const across = hostsChosen();
    const parameters = explainParameters(common.value);
    const asked = useAnswer<Explanation>("explain", across.length > 0 ? { ...parameters, across: across.join(",") } : parameters);
    const isWhole = !view.value.window && Object.keys(view.value.filter).length === 0 && across.length === 0;
    useEffect(() => {
        if (isWhole && asked.answer && !asked.isPending) explanation.value = asked.answer;
    }, [asked.answer, asked.isPending, isWhole]);
    return (
        <>
            <OtherHosts chosen={across} />
            <Explained asked={asked} />
        </>
    );
}

function Explained({ asked }: { readonly asked: Asked<Explanation> }) {
    if (asked.failure) return <Problem failure={asked.failure} />;
    if (!asked.answer) return <Pending what="looking for what was slow, and why" />;
    return <Told explanation={asked.answer} isStale={asked.isPending} />;
}

/** Recordings beside this one. */
function others(): readonly RecordingInfo[] {
    const all = recordings.value?.recordings ?? [];
    return all.filter((one) => one.id !== recording.value?.id);
}

/** Ids of recordings of other hosts in which stories go on. */
function hostsChosen(): readonly string[] {
    const words = (view.value.options["across"] ?? "").split(",");
    return others().flatMap((one) => (words.includes(one.id) ? [one.id] : []));
}

/** Which recordings are of hosts that this one waited for. */
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
            <legend>Go on where it waits for other hosts</legend>
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

/** Of filters, explain knows who and which device. */
export function explainParameters(from: Readonly<Record<string, string>>): Record<string, string> {
    const known = ["w", "pid", "tid", "dev"];
    return Object.fromEntries(Object.entries(from).filter(([key]) => known.includes(key)));
}

export function Told({ explanation: told, isStale }: { readonly explanation: Explanation; readonly isStale: boolean }) {
    const { stories, findings, patterns, caveats, tracer_share: share } = told;
    const isQuiet = stories.length + findings.length + patterns.length === 0;
    return (
        <div class={isStale ? "told stale" : "told"}>
            {isQuiet && <NothingFound />}
            {stories.map((story, at) => (
                <StoryCard key={`${story.target.id}-${at}`} story={story} number={at + 1} isOpen={at === 0} />
            ))}
            {findings.length > 0 && <h2>{stories.length > 0 ? "Found besides" : "Found"}</h2>}
            {findings.map((finding) => (
                <FindingCard key={finding.says} finding={finding} />
            ))}
            {patterns.length > 0 && <h2>Patterns</h2>}
            {patterns.map((pattern) => (
                <article class="card" key={pattern.says}>
                    <p class="verdict">{visible(pattern.says)}</p>
                    <ul>
                        {pattern.hints.map((hint) => (
                            <li key={hint}>{visible(hint)}</li>
                        ))}
                    </ul>
                </article>
            ))}
            <ul class="caveats">
                {caveats.map((caveat) => (
                    <li key={caveat}>{visible(caveat)}</li>
                ))}
                {share !== null && share >= 0.01 && <li>the recorder took {ratio(share)} of the CPUs</li>}
            </ul>
        </div>
    );
}

function NothingFound() {
    return (
        <article class="card">
            <p class="verdict">Nothing stands out in {recording.value ? visible(recording.value.name) : "this recording"}.</p>
            <p>
                No call took much longer than its like, and nobody waited long for a CPU. If something was slow all the time,
                choose its thread or its window and ask again: drag over a chart, then “Explain this box”.
            </p>
        </article>
    );
}

function FindingCard({ finding }: { finding: Finding }) {
    const [isOpen, setOpen] = useState(false);
    const show = () => {
        const window = clamp(withMargin(span(clock.value, finding.begin_ns, finding.end_ns)), clock.value.length);
        const { pid } = finding.culprit;
        const isDevice = finding.object?.kind === "device";
        const page = isDevice ? "block" : finding.kind === "temporary_files" ? "files" : "io";
        const filter = isDevice ? { dev: finding.object?.name ?? "" } : pid === null ? {} : { pid: String(pid) };
        go({ page, window, filter, options: {} });
    };
    return (
        <article class="card">
            <p class="verdict">
                <button type="button" class="link strong culprit" onClick={show}>
                    {visible(actorName(finding.culprit))}
                </button>{" "}
                {visible(withoutName(finding))}
            </p>
            <p class="actions">
                <button type="button" onClick={show}>
                    show it
                </button>
                <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
                    what to try
                </button>
            </p>
            {isOpen && (
                <ul>
                    {finding.suggestions.map((advice) => (
                        <li key={advice}>{visible(advice)}</li>
                    ))}
                </ul>
            )}
        </article>
    );
}

/** The sentence without the name that it begins with, which stands there as a link. */
function withoutName(finding: Finding): string {
    const name = actorName({ ...finding.culprit, tid: finding.culprit.pid });
    return [actorName(finding.culprit), name].reduce(
        (says, begin) => (says.startsWith(begin) ? says.slice(begin.length).trimStart() : says),
        finding.says,
    );
}
