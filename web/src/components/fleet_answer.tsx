import type { Parameters } from "../api";
import { LAKE_CLOCK, leadOf } from "../fleet";
import { fleetChosen, useFleet } from "../lake";
import type { Answer } from "../types";
import { bytes, plural } from "../units";
import { visible } from "../visible";
import { Caveats } from "./answer";
import { Pending, Problem } from "./problem";
import { Table } from "./table";

/** Result of a lake query. */
export function FleetAnswer({ parameters, none }: { readonly parameters: Parameters; readonly none: string }) {
    const query = useFleet<Answer>(parameters);
    if (query.failure) return <Problem failure={query.failure} />;
    if (!query.answer) return <Pending what="Querying the lake…" />;
    const chosen = fleetChosen.value?.row;
    return (
        <div class={query.isPending ? "answer stale" : "answer"}>
            {query.answer.tables.map((table) => (
                <Table
                    key={table.name}
                    table={table}
                    clock={LAKE_CLOCK}
                    none={none}
                    selected={(row) => row === chosen}
                    onSelect={(row) => (fleetChosen.value = { row, table, lead: leadOf(row) })}
                />
            ))}
            <AnswerNotes answer={query.answer} />
        </div>
    );
}

/** Caveats of a result, and the data it was computed from. */
export function AnswerNotes({ answer }: { readonly answer: Answer }) {
    const facts = answer.tables[0]?.facts ?? {};
    const number = (name: string) => (typeof facts[name] === "number" ? facts[name] : null);
    const [hosts, recordings, size, seconds] = ["hosts", "recordings", "bytes_read", "seconds"].map(number);
    const scope = typeof recordings === "number" && typeof hosts === "number" && `${plural(recordings, "recording")} of ${plural(hosts, "host")}`;
    const read = typeof size === "number" && typeof seconds === "number" && `${bytes(size)} read in ${seconds} s`;
    const of = [scope, read, typeof facts["engine"] === "string" && `by ${visible(facts["engine"])}`].filter(Boolean);
    return (
        <>
            <Caveats answer={answer} />
            {answer.next && (
                <p class="quiet">
                    next: <code>{visible(answer.next)}</code>
                </p>
            )}
            {of.length > 0 && <p class="quiet">{of.join(", ")}; times in UTC</p>}
        </>
    );
}
