import type { Actor } from "../types";
import { visible } from "../visible";

/** The other host that an actor runs on; nothing for actors of this recording. */
export function HostBadge({ actor }: { readonly actor: Actor }) {
    if (actor.host === undefined) return null;
    return (
        <span class="badge host" title="on another host">
            <bdi>{visible(actor.host)}</bdi>
        </span>
    );
}
