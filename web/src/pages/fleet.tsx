import { api, fleet } from "../app";
import { FleetAnswer } from "../components/fleet_answer";
import { FleetForm } from "../components/fleet_form";
import { FleetHeat } from "../components/fleet_heat";
import { Pending } from "../components/problem";
import { Tabs } from "../components/tabs";
import { fieldsOf, type FleetQuestion, fleetTab, fleetTabs, parametersOf, questionOf } from "../fleet";
import { choices, fleetChosen } from "../lake";
import { view } from "../state";
import { visible } from "../visible";

/** Many hosts at once: where and when it was slow, who is unlike the others, and why. */
export function FleetPage() {
    const info = fleet.value;
    if (api.value?.isReport) return <Missing />;
    if (!info) return <Pending what="asking for the lake" />;
    const { options } = view.value;
    const tab = fleetTab(info, options);
    const question = tab && questionOf(info, tab.id);
    if (!info.lake || !tab || !question) return <Missing />;
    document.title = `${visible(info.lake)} – whyslow`;
    const parameters = parametersOf(question, options);
    const show = (id: string) => {
        fleetChosen.value = null;
        choices({ tab: id });
    };
    return (
        <Tabs label="Fleet" tabs={fleetTabs(info)} active={tab.id} onChoose={show}>
            <FleetForm question={question} />
            <About question={question} />
            {wanting(tab.id, parameters) ? (
                <p class="none">Say since which moment (`at`), or by which label and value hosts belong to the one side: then both are compared.</p>
            ) : tab.id === "heat" ? (
                <FleetHeat key="heat" parameters={parameters} none={tab.none} />
            ) : (
                <FleetAnswer key={tab.id} parameters={parameters} none={tab.none} />
            )}
        </Tabs>
    );
}

/** How the answer is told; without that a table is a riddle. */
function About({ question }: { question: FleetQuestion }) {
    const paragraphs = question.more.split("\n\n").filter(Boolean);
    return (
        <details class="quiet fleet-about">
            <summary>what this tells, and what it is asked for by</summary>
            <p>{question.about}</p>
            {paragraphs.map((paragraph) => (
                <p key={paragraph}>{paragraph}</p>
            ))}
            <dl class="keys">
                {fieldsOf(question).map((field) => (
                    <div key={field.option}>
                        <dt>{field.label}</dt>
                        <dd>{field.about}</dd>
                    </div>
                ))}
            </dl>
        </details>
    );
}

/** Before and after what is for people to say. */
function wanting(question: string, { at, label, value }: Readonly<Record<string, unknown>>): boolean {
    return question === "rollout" && !at && !(label && value);
}

function Missing() {
    return (
        <article class="card">
            <p class="verdict">{api.value?.isReport ? "A report is of one recording: it has no lake." : "This server has no lake."}</p>
            <p>
                Put recordings of many hosts into one and start the server with it: <code>whyslow fleet push web.wsl s3://traces/lake</code>,{" "}
                <code>whyslow serve --lake s3://traces/lake web.wsl</code>.
            </p>
        </article>
    );
}
