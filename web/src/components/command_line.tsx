import { copy } from "../clipboard";
import { title, visible } from "../visible";

/** A command to paste into a terminal, with a button that copies it. */
export function CommandLine({ command }: { readonly command: string }) {
    return (
        <span class="command">
            <code>
                <bdi>{visible(command)}</bdi>
            </code>{" "}
            <button type="button" class="small" onClick={() => void copy(command, "command")} title={title(`copy ${command}`)} aria-label={`copy the command ${title(command)}`}>
                copy
            </button>
        </span>
    );
}
