// Light or dark theme: the system's preference until the user chooses.
import { signal } from "@preact/signals";

const KEY = "whyslow.theme";
type Name = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const saved = stored();
const name = signal<Name>(saved ?? (system.matches ? "dark" : "light"));
/** Counts changes, so that canvases are redrawn. */
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
        // Pages from files may not store anything: the choice lasts until the page is closed.
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
