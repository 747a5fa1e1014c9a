import { useEffect, useState } from "preact/hooks";

import { clock } from "../app";
import { useAnswer } from "../query";
import { go, type PageId } from "../state";
import { sinceBegin, timeOfDay } from "../times";
import type { Hit } from "../types";
import { grouped } from "../units";
import { visible } from "../visible";
import { closeDialog, Dialog } from "./dialogs";
import { Pending, Problem } from "./problem";

/** Pause in typing before the search starts, ms. */
const STILL_MS = 200;
const PAGE_OF: Readonly<Record<string, PageId>> = {
    thread: "threads",
    process: "threads",
    file: "files",
    device: "block",
    function: "threads",
    host: "io",
    finding: "explain",
};

/** Searches threads, files, devices and functions by a part of their name. */
export function Search() {
    const [text, setText] = useState("");
    const [term, setTerm] = useState("");
    const [active, setActive] = useState(0);
    useEffect(() => {
        const timer = setTimeout(() => setTerm(text.trim()), STILL_MS);
        return () => clearTimeout(timer);
    }, [text]);
    const found = useAnswer<{ readonly hits: readonly Hit[]; readonly cut: boolean }>("search", term.length > 0 ? { q: term, limit: 100 } : null);
    const hits = term ? (found.answer?.hits ?? []) : [];
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "ArrowDown") setActive(Math.min(active + 1, hits.length - 1));
        else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
        else if (event.key === "Enter" && hits[active]) open(hits[active]);
        else return;
        event.preventDefault();
    };
    return (
        <Dialog label="search">
            <input
                type="text"
                list={undefined}
                role="combobox"
                aria-label="part of a name"
                aria-expanded={hits.length > 0}
                aria-controls="hits"
                aria-activedescendant={hits.length ? `hit-${active}` : undefined}
                value={text}
                placeholder="thread, file, device, function, host"
                onInput={(event) => {
                    setText(event.currentTarget.value);
                    setActive(0);
                }}
                onKeyDown={onKeyDown}
            />
            {found.failure && <Problem failure={found.failure} />}
            {term && found.isPending && <Pending what="Searching…" />}
            <ul id="hits" role="listbox" aria-label="matches">
                {hits.map((hit, at) => (
                    <li key={`${hit.kind}-${hit.text}-${at}`} id={`hit-${at}`} role="option" aria-selected={at === active} onClick={() => open(hit)}>
                        <span class="kind">{hit.kind}</span> <bdi>{visible(hit.text)}</bdi>{" "}
                        <span class="quiet">
                            {hit.detail && visible(hit.detail)} {hit.count !== null && grouped(hit.count)}{" "}
                            {hit.begin_ns !== null && timeOfDay(clock.value, sinceBegin(clock.value, hit.begin_ns), 1e6)}
                        </span>
                    </li>
                ))}
            </ul>
            {term && found.answer && hits.length === 0 && !found.isPending && <p class="quiet none">no matches</p>}
            {found.answer?.cut && term && <p class="quiet">more matches than shown; type more of the name</p>}
        </Dialog>
    );
}

function open(hit: Hit): void {
    closeDialog();
    const filter = Object.fromEntries(Object.entries(hit.filter ?? {}).map(([key, value]) => [key, String(value)]));
    go({ page: PAGE_OF[hit.kind] ?? "io", filter, options: hit.kind === "function" ? { tab: "stacks-top" } : {} });
}
