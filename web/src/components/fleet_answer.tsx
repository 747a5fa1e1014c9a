import type { Parameters } from "../api";
import { LAKE_CLOCK, leadOf } from "../fleet";
import { fleetChosen, useFleet } from "../lake";
import type { Answer } from "../types";
import { bytes, plural } from "../units";
import { visible } from "../visible";
import { Caveats } from "./answer";
import { Pending, Problem } from "./problem";
import { Table } from "./table";

/** Rows of a question about the lake. */
export function FleetAnswer({ parameters, none }: { readonly parameters: Parameters; readonly none: string }) {
    const asked = useFleet<Answer>(parameters);
    if (asked.failure) return <Problem failure={asked.failure} />;
    if (!asked.answer) return <Pending what="asking the lake" />;
    const chosen = fleetChosen.value?.row;
    return (
        <div class={asked.isPending ? "answer stale" : "answer"}>
            {asked.answer.tables.map((table) => (
                <Table
                    key={table.name}
                    table={table}
                    clock={LAKE_CLOCK}
                    none={none}
                    selected={(row) => row === chosen}
                    onSelect={(row) => (fleetChosen.value = { row, table, lead: leadOf(row) })}
                />
            ))}
            <AnswerNotes answer={asked.answer} />
        </div>
    );
}

/** What an answer does not tell, and what it was made from. */
export function AnswerNotes({ answer }: { readonly answer: Answer }) {
    const facts = answer.tables[0]?.facts ?? {};
    const number = (name: string) => (typeof facts[name] === "number" ? facts[name] : null);
    const [hosts, recordings, size, seconds] = ["hosts", "recordings", "bytes_read", "seconds"].map(number);
    const asked = typeof recordings === "number" && typeof hosts === "number" && `${plural(recordings, "recording")} of ${plural(hosts, "host")}`;
    const read = typeof size === "number" && typeof seconds === "number" && `${bytes(size)} read in ${seconds} s`;
    const of = [asked, read, typeof facts["engine"] === "string" && `by ${visible(facts["engine"])}`].filter(Boolean);
    return (
        <>
            <Caveats answer={answer} />
            {answer.next && (
                <p class="quiet">
                    next: <code>{visible(answer.next)}</code>
                </p>
            )}
            {of.length > 0 && <p class="quiet">{of.join(", ")}; times are in UTC</p>}
        </>
    );
}
