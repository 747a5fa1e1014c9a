// What leaves the page goes to the clipboard or into a file, never over a network.
import { toast } from "./components/toast";

export async function copy(text: string, what: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        toast(`${what} copied`);
    } catch {
        // Without permission: the old way, from a field that nobody sees.
        const field = document.createElement("textarea");
        field.value = text;
        field.className = "unseen";
        document.body.append(field);
        field.select();
        const isDone = document.execCommand("copy");
        field.remove();
        toast(isDone ? `${what} copied` : `${what} could not be copied`);
    }
}

export function download(content: BlobPart, name: string, type: string): void {
    const place = URL.createObjectURL(new Blob([content], { type }));
    const link = document.createElement("a");
    link.href = place;
    link.download = name.replace(/[^\w.-]+/g, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(place), 10_000);
}
