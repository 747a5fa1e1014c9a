// A question of a component: asked when its parameters change, dropped when they change again.
import { useEffect, useRef, useState } from "preact/hooks";

import { address, ApiError, type Parameters } from "./api";
import { api, recording } from "./app";

export interface Asked<T> {
    /** The answer, or the one to the question before while this one is under way. */
    readonly answer: T | null;
    readonly failure: ApiError | null;
    readonly isPending: boolean;
}

/** Of the recording; `null` asks nothing. The shape of answers is that of docs/openapi.json. */
export function useAnswer<T>(endpoint: string, parameters: Parameters | null): Asked<T> {
    const of = recording.value;
    return useAsked(endpoint, parameters && of ? { rec: of.id, ...parameters } : null, `${of?.digest ?? ""}${of?.end_ns ?? ""}`);
}

/** Of what is no recording. With another version the same is asked again. */
export function useAsked<T>(endpoint: string, whole: Parameters | null, version: string): Asked<T> {
    const from = api.value;
    const place = whole ? `${address(endpoint, whole)}#${version}` : null;
    const kept = whole && from ? (from.kept(endpoint, whole) as T | undefined) : undefined;
    const [state, setState] = useState<Asked<T> & { readonly place: string | null }>({
        answer: null,
        failure: null,
        isPending: false,
        place: null,
    });
    const last = useRef<T | null>(null);
    useEffect(() => {
        if (!whole || !from || place === null) return;
        const control = new AbortController();
        setState({ answer: last.current, failure: null, isPending: true, place });
        from.json(endpoint, whole, control.signal).then(
            (answer) => {
                last.current = answer as T;
                if (!control.signal.aborted) setState({ answer: last.current, failure: null, isPending: false, place });
            },
            (error: unknown) => {
                if (control.signal.aborted) return;
                const failure = error instanceof ApiError ? error : new ApiError(String(error), 0);
                setState({ answer: null, failure, isPending: false, place });
            },
        );
        return () => control.abort();
    }, [place, from]);
    if (place === null) return { answer: null, failure: null, isPending: false };
    if (kept !== undefined) return { answer: kept, failure: null, isPending: false };
    return state.place === place ? state : { answer: last.current, failure: null, isPending: true };
}
