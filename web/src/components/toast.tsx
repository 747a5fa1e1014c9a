import { signal } from "@preact/signals";

import { announce } from "../app";

const text = signal<string | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;
const SHOWN_MS = 2500;

/** Shows a short message about a completed action. */
export function toast(message: string): void {
    text.value = message;
    announce(message);
    clearTimeout(timer);
    timer = setTimeout(() => {
        text.value = null;
    }, SHOWN_MS);
}

export function Toast() {
    return text.value === null ? null : (
        <div class="toast" aria-hidden="true">
            {text.value}
        </div>
    );
}
