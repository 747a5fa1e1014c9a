import { useState } from "preact/hooks";

import { lettersAct, offered } from "../actions";
import { commandOf } from "../commands";
import { closeDialog, Dialog } from "./dialogs";

/** All actions, searchable by name. */
export function Palette() {
    const [text, setText] = useState("");
    const [active, setActive] = useState(0);
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = offered().filter((action) => words.every((word) => action.name.toLowerCase().includes(word)));
    const run = (at: number) => {
        closeDialog();
        found[at]?.run();
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "ArrowDown") setActive(Math.min(active + 1, found.length - 1));
        else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
        else if (event.key === "Enter") run(active);
        else return;
        event.preventDefault();
    };
    return (
        <Dialog label="actions">
            <input
                type="text"
                list={undefined}
                role="combobox"
                aria-label="action"
                aria-expanded="true"
                aria-controls="actions"
                aria-activedescendant={`action-${active}`}
                value={text}
                placeholder="action"
                onInput={(event) => {
                    setText(event.currentTarget.value);
                    setActive(0);
                }}
                onKeyDown={onKeyDown}
            />
            <ul id="actions" role="listbox" aria-label="actions">
                {found.map((action, at) => (
                    <li key={action.name} id={`action-${at}`} role="option" aria-selected={at === active} onClick={() => run(at)}>
                        {action.name} <kbd>{action.keys}</kbd>
                    </li>
                ))}
            </ul>
            <p class="quiet">
                in the terminal: <code>{commandOf()}</code>
            </p>
        </Dialog>
    );
}

const CHART_KEYS: readonly (readonly [string, string])[] = [
    ["w s, + −, Ctrl+wheel", "zoom in and out"],
    ["a D, ← →", "earlier, later (also d, without samples)"],
    ["d", "with samples: all stacks at the cursor"],
    ["n N", "next or previous wait of the row; Enter: go to the lock holder"],
    ["↑ ↓", "row above, below"],
    [", .", "interval before, after on the row"],
    ["Enter", "select the item under the cursor"],
    ["drag", "select a window; Ctrl+drag: select a baseline"],
    ["Shift+drag", "pan"],
    ["0, double click", "show the whole recording"],
];

export function Help() {
    return (
        <Dialog label="help">
            <div class="columns">
                <Keys name="everywhere" keys={offered().filter((action) => action.keys).map((action) => [action.keys, action.name])} />
                <Keys name="in charts" keys={CHART_KEYS} />
            </div>
            <label>
                <input type="checkbox" checked={lettersAct.value} onChange={(event) => (lettersAct.value = event.currentTarget.checked)} /> single-letter
                shortcuts
            </label>
            <p class="quiet">
                Grades: A observed in events, B most likely, C overlapped in time. No data leaves this machine. “copy command”
                copies the command that prints the same data in a terminal.
            </p>
        </Dialog>
    );
}

function Keys({ name, keys }: { name: string; keys: readonly (readonly [string, string])[] }) {
    return (
        <section>
            <h3>{name}</h3>
            <dl class="keys">
                {keys.map(([key, what]) => (
                    <div key={key}>
                        <dt>
                            <kbd>{key}</kbd>
                        </dt>
                        <dd>{what}</dd>
                    </div>
                ))}
            </dl>
        </section>
    );
}
