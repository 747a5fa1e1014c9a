import { fleet, recordings } from "../app";
import { exactCell, shownCell } from "../cells";
import { copy } from "../clipboard";
import { commandsOf, LAKE_CLOCK, type Lead, openOf, rangeText } from "../fleet";
import { choices, type FleetChosen, fleetChosen } from "../lake";
import { go } from "../state";
import { clamp, withMargin } from "../times";
import { toBig } from "../exact";
import { title, visible } from "../visible";

/** Details of a row, and the commands that lead to its cause. */
export function FleetDrawer() {
    const one = fleetChosen.value;
    if (!one) return null;
    return (
        <aside class="drawer" aria-label="selection">
            <header>
                <h2>
                    <bdi>{visible(one.lead?.host ?? "row")}</bdi>
                </h2>
                {one.lead && <Actions lead={one.lead} />}
                <button type="button" aria-label="close" onClick={() => (fleetChosen.value = null)}>
                    ×
                </button>
            </header>
            <Item one={one} />
            {one.lead && <Ways lead={one.lead} />}
        </aside>
    );
}

/** Minimum window shown around a row, ns. */
const AROUND_NS = 1e9;

function Actions({ lead }: { lead: Lead }) {
    const here = openOf(lead, recordings.value?.recordings ?? []);
    const { when } = lead;
    const explain = () => {
        if (!here) return;
        const length = Number(toBig(here.recording.end_ns) - toBig(here.recording.begin_ns));
        const window = here.window && clamp(withMargin(here.window), length, Math.min(AROUND_NS, length));
        go({ recording: here.recording.id, page: "explain", window, filter: {}, baseline: null, selected: null, options: {} });
    };
    return (
        <p class="actions">
            {here && (
                <button type="button" class="primary" onClick={explain}>
                    {here.window ? "explain in" : "explain"} <bdi>{visible(here.recording.name)}</bdi>
                </button>
            )}
            {when && (
                <button type="button" onClick={() => choices({ tab: "slowest", hosts: lead.host, when: rangeText(when) })}>
                    slowest operations of this host at that time
                </button>
            )}
            {when && (
                <button type="button" onClick={() => choices({ tab: "deviations", hosts: null, when: rangeText(when) })}>
                    deviations of all hosts at that time
                </button>
            )}
            <button type="button" onClick={() => choices({ tab: "verdicts", hosts: lead.host })}>
                verdicts on this host
            </button>
        </p>
    );
}

function Item({ one }: { one: FleetChosen }) {
    const { row, table } = one;
    const columns = table.columns.filter((column) => (row[column.name] ?? "") !== "");
    return (
        <dl class="item">
            {columns.map((column) => (
                <div key={column.name}>
                    <dt>{visible(column.title)}</dt>
                    <dd title={title(exactCell(row[column.name]))}>
                        <bdi>{shownCell(row[column.name], column, LAKE_CLOCK)}</bdi>
                    </dd>
                </div>
            ))}
        </dl>
    );
}

/** Commands, in the order in which to run them. */
function Ways({ lead }: { lead: Lead }) {
    const commands = commandsOf(lead, fleet.value?.lake ?? "");
    const labels = ["find the recording", "fetch it, if the lake has the whole recording", "explain why it was slow"];
    return (
        <ol class="ways" aria-label="commands to find the cause">
            {commands.map((command, at) => (
                <li key={command}>
                    <span class="quiet">{labels[at]}:</span> <code>{visible(command)}</code>{" "}
                    <button type="button" class="small" aria-label={`copy: ${labels[at] ?? ""}`} onClick={() => void copy(command, "command")}>
                        copy
                    </button>
                </li>
            ))}
        </ol>
    );
}
