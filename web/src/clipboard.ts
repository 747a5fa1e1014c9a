// Data leaves the page only through the clipboard or a file, never over a network.
import { toast } from "./components/toast";

export async function copy(text: string, what: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        toast(`${what} copied`);
    } catch {
        // Without clipboard permission: fall back to a hidden text field.
        const field = document.createElement("textarea");
        field.value = text;
        field.className = "unseen";
        document.body.append(field);
        field.select();
        const isDone = document.execCommand("copy");
        field.remove();
        toast(isDone ? `${what} copied` : `cannot copy the ${what}`);
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
