import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export type DialogName = "search" | "bookmarks" | "help" | "palette";

/** The dialog that is open. */
export const dialog = signal<DialogName | null>(null);

export function openDialog(name: DialogName): void {
    dialog.value = name;
}

export function closeDialog(): void {
    dialog.value = null;
}

/** A native dialog: keeps the focus inside, closes on Escape and restores the focus. */
export function Dialog({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
    const element = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        const before = document.activeElement;
        element.current?.showModal();
        // Browsers disagree about which element receives the focus.
        element.current?.querySelector<HTMLElement>("input")?.focus();
        return () => {
            if (before instanceof HTMLElement) before.focus();
        };
    }, []);
    return (
        <dialog
            ref={element}
            aria-label={label}
            onClose={closeDialog}
            onKeyDown={(event) => event.stopPropagation()}
            onClick={(event) => {
                if (event.target === element.current) closeDialog();
            }}
        >
            <div class="inside">
                <header>
                    <h2>{label}</h2>
                    <button type="button" onClick={closeDialog} aria-label="close">
                        ×
                    </button>
                </header>
                {children}
            </div>
        </dialog>
    );
}
