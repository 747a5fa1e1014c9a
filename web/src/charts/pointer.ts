// Mouse and touch gestures on a chart over time.
import { toTime, type TimeScale } from "./scale";
import type { Span } from "../times";

export interface Gestures {
    readonly scale: () => TimeScale;
    /** Position of the pointer; null when it left. */
    readonly onHover: (place: { readonly x: number; readonly y: number } | null) => void;
    readonly onClick: (x: number, y: number) => void;
    /** While a range is dragged, and when it is done. */
    readonly onRange: (range: Span, rows: readonly [number, number], isDone: boolean, isBaseline: boolean) => void;
    /** A new window; not done while it is still moving. */
    readonly onWindow: (window: Span, isDone: boolean) => void;
    readonly onAll: () => void;
}

/** A shorter movement is a click, not a drag. */
const CLICK_PIXELS = 4;
const WHEEL_ZOOM = 0.0025;

/** Adds listeners to an element; returns a function that removes them. */
export function listen(element: HTMLElement, gestures: Gestures): () => void {
    let begin: { x: number; y: number; window: Span; isPan: boolean; isBaseline: boolean } | null = null;
    const place = (event: MouseEvent) => {
        const box = element.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const range = (x: number) => {
        const scale = gestures.scale();
        const [from, to] = [toTime(scale, begin?.x ?? x), toTime(scale, x)];
        return { begin: Math.round(Math.min(from, to)), end: Math.round(Math.max(from, to)) };
    };
    const moved = (x: number): Span => {
        const window = begin?.window ?? gestures.scale().window;
        const by = ((begin?.x ?? x) - x) * ((window.end - window.begin) / Math.max(gestures.scale().width, 1));
        return { begin: window.begin + by, end: window.end + by };
    };
    const down = (event: PointerEvent) => {
        if (event.button !== 0) return;
        // Prevents text selection; that also prevents focus, which is therefore set here.
        event.preventDefault();
        element.closest<HTMLElement>("[tabindex='0']")?.focus({ preventScroll: true });
        const { x, y } = place(event);
        const isBaseline = event.ctrlKey || event.metaKey;
        begin = { x, y, window: gestures.scale().window, isPan: event.shiftKey, isBaseline };
        element.setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
        const { x, y } = place(event);
        gestures.onHover({ x, y });
        if (!begin || Math.abs(x - begin.x) < CLICK_PIXELS) return;
        if (begin.isPan) gestures.onWindow(moved(x), false);
        else gestures.onRange(range(x), [Math.min(begin.y, y), Math.max(begin.y, y)], false, begin.isBaseline);
    };
    const up = (event: PointerEvent) => {
        if (!begin) return;
        const { x, y } = place(event);
        if (Math.abs(x - begin.x) < CLICK_PIXELS) gestures.onClick(x, y);
        else if (begin.isPan) gestures.onWindow(moved(x), true);
        else gestures.onRange(range(x), [Math.min(begin.y, y), Math.max(begin.y, y)], true, begin.isBaseline);
        begin = null;
    };
    const wheel = (event: WheelEvent) => {
        const scale = gestures.scale();
        const size = scale.window.end - scale.window.begin;
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const at = toTime(scale, place(event).x);
            const factor = Math.exp(event.deltaY * WHEEL_ZOOM);
            gestures.onWindow({ begin: at - (at - scale.window.begin) * factor, end: at + (scale.window.end - at) * factor }, true);
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            const by = (event.deltaX / Math.max(scale.width, 1)) * size;
            gestures.onWindow({ begin: scale.window.begin + by, end: scale.window.end + by }, true);
        }
    };
    const leave = () => gestures.onHover(null);
    const all = () => gestures.onAll();
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointerleave", leave);
    element.addEventListener("dblclick", all);
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
        element.removeEventListener("pointerdown", down);
        element.removeEventListener("pointermove", move);
        element.removeEventListener("pointerup", up);
        element.removeEventListener("pointerleave", leave);
        element.removeEventListener("dblclick", all);
        element.removeEventListener("wheel", wheel);
    };
}
