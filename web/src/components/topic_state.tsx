import { reasonText, recordCommand } from "../topic_states";
import type { TopicState } from "../types";
import { visible } from "../visible";
import { CommandLine } from "./command_line";

interface Props {
    readonly state: TopicState;
    readonly reason: string | null;
    readonly recordWith: string | null;
}

/** Why there are no rows, and the command that records them. */
export function WhyNone({ state, reason, recordWith }: Props) {
    const command = recordCommand(recordWith);
    return (
        <div class={`none why-none state-${state}`}>
            <p>{visible(reasonText(state, reason))}</p>
            {command !== null && (
                <p>
                    Record them: <CommandLine command={command} />
                </p>
            )}
            {command === null && recordWith !== null && <p>To record them: {visible(recordWith)}</p>}
        </div>
    );
}
