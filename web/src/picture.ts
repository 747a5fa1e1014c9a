// Saves the page as a picture for a ticket, painted from its canvases and texts within the page.
import { clock, fleet, recording, shown } from "./app";
import { download } from "./clipboard";
import { commandOf } from "./commands";
import { toast } from "./components/toast";
import { view } from "./state";
import { dateOf, length } from "./times";
import { duration } from "./units";
import { visible } from "./visible";

const MARGIN = 16;
const LINE = 20;
/** Maximum height in CSS pixels; a longer page is cut, with a note. */
const HEIGHT_MAX = 4000;
/** Stays sharp when enlarged. */
const SCALE = 2;

/** Paints the main part of the page, below its source and above the command with the same output. */
export async function savePicture(): Promise<void> {
    const main = document.querySelector<HTMLElement>("main");
    if (!main) return;
    const lake = view.value.page === "fleet" ? (fleet.value?.lake ?? "lake") : null;
    const name = lake ?? recording.value?.name ?? "recording";
    const blob = await pictureOf(main, lake ? visible(lake) : heading(name), commandOf());
    if (!blob) {
        toast("cannot save the picture: not supported by this browser");
        return;
    }
    download(blob, `${name}.png`, "image/png");
    toast("picture saved");
}

function heading(name: string): string {
    const { begin } = shown.value;
    return `${visible(name)} · ${dateOf(clock.value, begin)} · ${duration(length(shown.value))}`;
}

async function pictureOf(part: HTMLElement, title: string, command: string): Promise<Blob | null> {
    const frame = part.getBoundingClientRect();
    // The element may be higher than its content.
    const filled = Math.max(...[...part.children].map((child) => child.getBoundingClientRect().bottom)) - frame.top;
    const height = Math.min(frame.height, filled + MARGIN, HEIGHT_MAX);
    const canvas = document.createElement("canvas");
    canvas.width = (frame.width + 2 * MARGIN) * SCALE;
    canvas.height = (height + 2 * MARGIN + 3 * LINE) * SCALE;
    const pen = canvas.getContext("2d");
    if (!pen) return null;
    const body = getComputedStyle(document.body);
    pen.scale(SCALE, SCALE);
    pen.fillStyle = body.backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = body.color;
    pen.textBaseline = "middle";
    pen.font = `bold ${body.fontSize} ${body.fontFamily}`;
    pen.fillText(title, MARGIN, MARGIN + LINE / 2);
    pen.font = `${body.fontSize} monospace`;
    const note = Math.min(frame.height, filled) > height ? `${command}   (cut at the bottom)` : command;
    pen.fillText(note, MARGIN, height + MARGIN + LINE * 2.5);
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN, MARGIN + LINE * 1.5, frame.width, height);
    pen.clip();
    pen.translate(MARGIN - frame.left, MARGIN + LINE * 1.5 - frame.top);
    await paint(pen, part);
    pen.restore();
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Boxes, canvases and texts in document order, without what is scrolled out of view. */
async function paint(pen: CanvasRenderingContext2D, element: Element): Promise<void> {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (style.display === "none" || style.visibility === "hidden" || box.width === 0 || element.classList.contains("unseen")) return;
    if (element instanceof HTMLCanvasElement) {
        if (element.width > 0 && element.height > 0) pen.drawImage(element, box.left, box.top, box.width, box.height);
        return;
    }
    if (element instanceof SVGSVGElement) return paintSvg(pen, element, box);
    if (style.backgroundColor !== "rgba(0, 0, 0, 0)") {
        pen.fillStyle = style.backgroundColor;
        pen.fillRect(box.left, box.top, box.width, box.height);
    }
    if (style.borderTopStyle !== "none" && Number.parseFloat(style.borderTopWidth) > 0 && style.borderBottomStyle !== "none") {
        pen.strokeStyle = style.borderTopColor;
        pen.lineWidth = 1;
        pen.strokeRect(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1);
    }
    const isCut = style.overflowX !== "visible" || style.overflowY !== "visible";
    if (isCut) {
        pen.save();
        pen.beginPath();
        pen.rect(box.left, box.top, box.width, box.height);
        pen.clip();
    }
    if (element instanceof HTMLInputElement || element instanceof HTMLSelectElement) paintField(pen, element, style);
    const isFolded = element instanceof HTMLDetailsElement && !element.open;
    for (const child of isFolded ? element.querySelectorAll(":scope > summary") : element.childNodes) {
        if (child instanceof Element) await paint(pen, child);
        else if (child instanceof Text) paintText(pen, child, style);
    }
    if (isCut) pen.restore();
}

/** The value of a form field, which is not a text node. */
function paintField(pen: CanvasRenderingContext2D, field: HTMLInputElement | HTMLSelectElement, style: CSSStyleDeclaration): void {
    const isBox = field instanceof HTMLInputElement && field.type === "checkbox";
    const chosen = field instanceof HTMLSelectElement ? (field.selectedOptions[0]?.text ?? "") : field.value;
    const box = field.getBoundingClientRect();
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.fillStyle = style.color;
    pen.textBaseline = "middle";
    if (!isBox) pen.fillText(visible(chosen), box.left + Number.parseFloat(style.paddingLeft) + 1, box.top + box.height / 2);
    else if (field.checked) pen.fillText("✓", box.left, box.top + box.height / 2);
}

function paintText(pen: CanvasRenderingContext2D, text: Text, style: CSSStyleDeclaration): void {
    if (!text.data.trim()) return;
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.fillStyle = style.color;
    pen.textBaseline = "middle";
    const range = document.createRange();
    // Line by line, by the position of each word.
    let line = "";
    let place: DOMRect | null = null;
    for (const { start, end } of words(text.data)) {
        range.setStart(text, start);
        range.setEnd(text, end);
        const box = range.getBoundingClientRect();
        if (place && Math.abs(box.top - place.top) > 2) {
            pen.fillText(line, place.left, place.top + place.height / 2);
            line = "";
            place = null;
        }
        place ??= box;
        line += text.data.slice(start, end);
    }
    if (place) pen.fillText(line, place.left, place.top + place.height / 2);
}

/** Words with the space after them. */
function words(text: string): { readonly start: number; readonly end: number }[] {
    return [...text.matchAll(/\S+\s*/g)].map((found) => ({ start: found.index, end: found.index + found[0].length }));
}

async function paintSvg(pen: CanvasRenderingContext2D, element: SVGSVGElement, box: DOMRect): Promise<void> {
    const copy = element.cloneNode(true) as SVGSVGElement;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", `${box.width}`);
    copy.setAttribute("height", `${box.height}`);
    // Style sheets do not apply inside an image: computed styles are copied to each element.
    const parts = element.querySelectorAll<SVGElement>("*");
    copy.querySelectorAll<SVGElement>("*").forEach((part, at) => {
        const of = parts[at];
        if (!of) return;
        const style = getComputedStyle(of);
        for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"])
            part.style.setProperty(name, style.getPropertyValue(name));
    });
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode().then(
        () => pen.drawImage(image, box.left, box.top, box.width, box.height),
        () => undefined,
    );
}
