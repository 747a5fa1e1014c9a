import { api, fleet } from "../app";
import { FleetAnswer } from "../components/fleet_answer";
import { FleetForm } from "../components/fleet_form";
import { FleetHeat } from "../components/fleet_heat";
import { Pending } from "../components/problem";
import { Tabs } from "../components/tabs";
import { fieldsOf, type FleetQuery, fleetTab, fleetTabs, parametersOf, queryOf } from "../fleet";
import { choices, fleetChosen } from "../lake";
import { view } from "../state";
import { visible } from "../visible";

/** Many hosts at once: where and when it was slow, which hosts deviate, and why. */
export function FleetPage() {
    const info = fleet.value;
    if (api.value?.isReport) return <Missing />;
    if (!info) return <Pending what="Loading the lake…" />;
    const { options } = view.value;
    const tab = fleetTab(info, options);
    const query = tab && queryOf(info, tab.id);
    if (!info.lake || !tab || !query) return <Missing />;
    document.title = `${visible(info.lake)} – whyslow`;
    const parameters = parametersOf(query, options);
    const show = (id: string) => {
        fleetChosen.value = null;
        choices({ tab: id });
    };
    return (
        <Tabs label="Fleet" tabs={fleetTabs(info)} active={tab.id} onChoose={show}>
            <FleetForm query={query} />
            <About query={query} />
            {isIncomplete(tab.id, parameters) ? (
                <p class="none">Enter a time (`at`), or a label and a value, to split the data into the two sides to compare.</p>
            ) : tab.id === "heat" ? (
                <FleetHeat key="heat" parameters={parameters} none={tab.none} />
            ) : (
                <FleetAnswer key={tab.id} parameters={parameters} none={tab.none} />
            )}
        </Tabs>
    );
}

/** Description of the query and its columns. */
function About({ query }: { query: FleetQuery }) {
    const paragraphs = query.more.split("\n\n").filter(Boolean);
    return (
        <details class="quiet fleet-about">
            <summary>about this query and its parameters</summary>
            <p>{query.about}</p>
            {paragraphs.map((paragraph) => (
                <p key={paragraph}>{paragraph}</p>
            ))}
            <dl class="keys">
                {fieldsOf(query).map((field) => (
                    <div key={field.option}>
                        <dt>{field.label}</dt>
                        <dd>{field.about}</dd>
                    </div>
                ))}
            </dl>
        </details>
    );
}

/** Whether a rollout query lacks the time or label that splits the data. */
function isIncomplete(query: string, { at, label, value }: Readonly<Record<string, unknown>>): boolean {
    return query === "rollout" && !at && !(label && value);
}

function Missing() {
    return (
        <article class="card">
            <p class="verdict">{api.value?.isReport ? "A report covers one recording and has no lake." : "This server has no lake."}</p>
            <p>
                Push recordings of several hosts to a lake and start the server with it: <code>whyslow fleet push web.wsl s3://traces/lake</code>,{" "}
                <code>whyslow serve --lake s3://traces/lake web.wsl</code>.
            </p>
        </article>
    );
}
