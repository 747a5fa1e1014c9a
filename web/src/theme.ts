// Light or dark: as the system says, until somebody chooses.
import { signal } from "@preact/signals";

const KEY = "whyslow.theme";
type Name = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const asked = stored();
const name = signal<Name>(asked ?? (system.matches ? "dark" : "light"));
/** Counts changes, for what is drawn on a canvas. */
const version = signal(0);

function stored(): Name | null {
    try {
        const value = localStorage.getItem(KEY);
        return value === "light" || value === "dark" ? value : null;
    } catch {
        return null;
    }
}

function apply(): void {
    document.documentElement.dataset["theme"] = name.value;
    version.value += 1;
}

function toggle(): void {
    name.value = name.value === "dark" ? "light" : "dark";
    try {
        localStorage.setItem(KEY, name.value);
    } catch {
        // Pages from files may not store anything: it holds until the page is closed.
    }
    apply();
}

system.addEventListener("change", () => {
    if (stored()) return;
    name.value = system.matches ? "dark" : "light";
    apply();
});
apply();

export const theme = { name, version, toggle };
