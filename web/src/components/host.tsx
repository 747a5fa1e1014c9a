import type { Actor } from "../types";
import { visible } from "../visible";

/** On which other host somebody is; nothing for those of the recording that is shown. */
export function HostBadge({ actor }: { readonly actor: Actor }) {
    if (actor.host === undefined) return null;
    return (
        <span class="badge host" title="on another host">
            <bdi>{visible(actor.host)}</bdi>
        </span>
    );
}
