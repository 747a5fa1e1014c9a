import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Width of an element in CSS pixels, and device pixels per CSS pixel. */
export function useSize(element: RefObject<HTMLElement | null>): readonly [number, number] {
    const [size, setSize] = useState<readonly [number, number]>([0, 1]);
    useEffect(() => {
        const of = element.current;
        if (!of) return;
        const measure = () => setSize([Math.floor(of.clientWidth), Math.min(devicePixelRatio || 1, 2)]);
        const observer = new ResizeObserver(measure);
        observer.observe(of);
        measure();
        return () => observer.disconnect();
    }, []);
    return size;
}
