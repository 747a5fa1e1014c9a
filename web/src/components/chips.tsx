import { useState } from "preact/hooks";

import { FILTER_KEYS, filterTitle, go, setFilter, view } from "../state";
import { spanText } from "../times";
import { duration } from "../units";
import { visible } from "../visible";

const FLAGS: ReadonlySet<string> = new Set(["errors", "no-tracer", "waits"]);

/** Active filters, and a form for another one. */
export function Chips() {
    const [isOpen, setOpen] = useState(false);
    const { filter, baseline } = view.value;
    return (
        <div class="chips" role="group" aria-label="filters">
            {Object.entries(filter).map(([key, value]) => (
                <button type="button" class="chip" key={key} onClick={() => setFilter(key, null)} aria-label={`remove the filter ${filterTitle(key)}${value === "true" ? "" : ` ${visible(value)}`}`}>
                    {filterTitle(key)}
                    {value !== "true" && (
                        <>
                            {" "}
                            <bdi>{visible(value)}</bdi>
                        </>
                    )}{" "}
                    ×
                </button>
            ))}
            {baseline && (
                <button type="button" class="chip baseline" onClick={() => go({ baseline: null })} title={spanText(baseline)}>
                    baseline {duration(baseline.end - baseline.begin)} ×
                </button>
            )}
            {isOpen ? (
                <Editor onDone={() => setOpen(false)} />
            ) : (
                <button type="button" class="chip add" onClick={() => setOpen(true)}>
                    + filter
                </button>
            )}
        </div>
    );
}

const EXAMPLES: Readonly<Record<string, string>> = {
    pid: "243",
    tid: "243",
    comm: "apache*",
    cgroup: "/docker/**",
    dev: "sda",
    file: "/var/lib/**",
    op: "open,sync",
    name: "openat",
    cpu: "0",
    size: "8k",
    min: "5ms",
    max: "1s",
    "min-size": "64k",
    "max-size": "1m",
};

function Editor({ onDone }: { onDone: () => void }) {
    const [key, setKey] = useState<string>("comm");
    const [value, setValue] = useState("");
    const submit = (event: Event) => {
        event.preventDefault();
        if (FLAGS.has(key)) setFilter(key, "true");
        else if (value.trim()) setFilter(key, value.trim());
        onDone();
    };
    return (
        <form
            class="chip editor"
            onSubmit={submit}
            onKeyDown={(event) => {
                if (event.key === "Escape") onDone();
                event.stopPropagation();
            }}
        >
            <select aria-label="filter by" value={key} onChange={(event) => setKey(event.currentTarget.value)}>
                {FILTER_KEYS.map((one) => (
                    <option key={one} value={one}>
                        {filterTitle(one)}
                    </option>
                ))}
            </select>
            {!FLAGS.has(key) && (
                <input
                    aria-label="value"
                    autofocus
                    value={value}
                    placeholder={EXAMPLES[key] ?? ""}
                    onInput={(event) => setValue(event.currentTarget.value)}
                />
            )}
            <button type="submit">add</button>
        </form>
    );
}
