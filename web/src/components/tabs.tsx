import { useId, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";

interface Props {
    readonly label: string;
    readonly tabs: readonly { readonly id: string; readonly title: string; readonly isMissing?: boolean; readonly hint?: string }[];
    readonly active: string;
    readonly onChoose: (id: string) => void;
    readonly children: ComponentChildren;
}

/** Tabs with the standard keyboard and screen-reader behaviour: arrow keys move, one tab is in the focus order. */
export function Tabs({ label, tabs, active, onChoose, children }: Props) {
    const id = useId();
    const list = useRef<HTMLDivElement>(null);
    const onKeyDown = (event: KeyboardEvent) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (step === 0) return;
        event.preventDefault();
        event.stopPropagation();
        const usable = tabs.filter((tab) => !tab.isMissing);
        const at = usable.findIndex((tab) => tab.id === active);
        const next = usable[(at + step + usable.length) % usable.length];
        if (!next) return;
        onChoose(next.id);
        list.current?.querySelector<HTMLButtonElement>(`[data-tab="${next.id}"]`)?.focus();
    };
    return (
        <div class="tabs">
            <div role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
                {tabs.map((tab) => (
                    <button
                        type="button"
                        role="tab"
                        key={tab.id}
                        id={`${id}-${tab.id}`}
                        data-tab={tab.id}
                        aria-selected={tab.id === active}
                        aria-controls={`${id}-panel`}
                        tabIndex={tab.id === active ? 0 : -1}
                        disabled={tab.isMissing}
                        title={tab.hint}
                        onClick={() => onChoose(tab.id)}
                    >
                        {tab.title}
                    </button>
                ))}
            </div>
            <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${active}`} tabIndex={-1}>
                {children}
            </div>
        </div>
    );
}
