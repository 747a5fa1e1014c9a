import type { ApiError } from "../api";
import { visible } from "../visible";

/** Why there is no answer, and what to do. */
export function Problem({ failure }: { readonly failure: ApiError }) {
    return (
        <div class="problem" role="alert">
            <p>{visible(failure.message)}</p>
            {failure.hint && <p class="hint">{visible(failure.hint)}</p>}
        </div>
    );
}

export function Pending({ what }: { readonly what: string }) {
    return (
        <p class="pending" role="status">
            <span class="spinner" aria-hidden="true" /> {what}
        </p>
    );
}
