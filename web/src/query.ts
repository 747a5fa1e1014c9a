// Hooks for requests of components: sent when parameters change, aborted when they change again.
import { useEffect, useRef, useState } from "preact/hooks";

import { address, ApiError, type Parameters } from "./api";
import { api, recording } from "./app";

export interface QueryState<T> {
    /** The response, or the previous one while the request is in flight. */
    readonly answer: T | null;
    readonly failure: ApiError | null;
    readonly isPending: boolean;
}

/** Queries the recording; `null` sends nothing. Responses have the schema of docs/openapi.json. */
export function useAnswer<T>(endpoint: string, parameters: Parameters | null): QueryState<T> {
    const of = recording.value;
    return useQuery(endpoint, parameters && of ? { rec: of.id, ...parameters } : null, `${of?.digest ?? ""}${of?.end_ns ?? ""}`);
}

/** Queries something other than a recording. A new `version` repeats the request. */
export function useQuery<T>(endpoint: string, whole: Parameters | null, version: string): QueryState<T> {
    const from = api.value;
    const place = whole ? `${address(endpoint, whole)}#${version}` : null;
    const kept = whole && from ? (from.kept(endpoint, whole) as T | undefined) : undefined;
    const [state, setState] = useState<QueryState<T> & { readonly place: string | null }>({
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
