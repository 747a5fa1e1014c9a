import { recordCommand, stateTitle } from "../topic_states";
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
        <p class={`none why-none state-${state}`}>
            {visible(reason ?? stateTitle(state))}
            {command !== null && (
                <>
                    {" "}
                    Record them: <CommandLine command={command} />
                </>
            )}
            {command === null && recordWith !== null && <> To record them: {visible(recordWith)}</>}
        </p>
    );
}
