import { useEffect, useState } from "preact/hooks";

import type { ApiError } from "../api";
import { visible } from "../visible";

/** An error and its hint. */
export function Problem({ failure }: { readonly failure: ApiError }) {
    return (
        <div class="problem" role="alert">
            <p>{visible(failure.message)}</p>
            {failure.hint && <p class="hint">{visible(failure.hint)}</p>}
        </div>
    );
}

/** Waits shorter than this show no seconds. */
const COUNTED_FROM = 3;

/** A pending request, with the elapsed seconds if it takes longer. */
export function Pending({ what }: { readonly what: string }) {
    const [seconds, setSeconds] = useState(0);
    useEffect(() => {
        const ticking = setInterval(() => setSeconds((before) => before + 1), 1000);
        return () => clearInterval(ticking);
    }, []);
    return (
        <p class="pending">
            <span class="spinner" aria-hidden="true" /> <span role="status">{what}</span>
            {seconds >= COUNTED_FROM && <span class="quiet"> {seconds} s</span>}
        </p>
    );
}
