import { visible } from "../visible";
import { AXIS_HEIGHT } from "./overlay";
import type { ChartRow } from "./rows";

const LABELS = 180;

interface LabelProps {
    readonly rows: readonly ChartRow[];
    readonly top: number;
    readonly active: number | null;
    readonly keyed: number | null;
    /** Lanes highlighted by a selection elsewhere. */
    readonly chosen: ReadonlySet<number>;
    readonly folded: ReadonlySet<string>;
    readonly onFold: (folded: ReadonlySet<string>) => void;
}

/** Names of the visible rows. */
export function Labels({ rows, top, active, keyed, chosen, folded, onFold }: LabelProps) {
    const toggle = (key: string) => {
        const next = new Set(folded);
        if (!next.delete(key)) next.add(key);
        onFold(next);
    };
    return (
        <div class="chart-labels" style={{ width: `${LABELS}px` }}>
            {rows.map((row) => {
                const style = { top: `${row.top - top + AXIS_HEIGHT}px`, height: `${row.height}px` };
                if (row.kind === "group") {
                    return (
                        <button type="button" class="group" key={row.key} style={style} tabIndex={-1} onClick={() => toggle(row.key)}>
                            {folded.has(row.key) ? "▸" : "▾"} <bdi>{visible(row.label)}</bdi> ({row.count})
                        </button>
                    );
                }
                const is = [row.lane.lane === active ? "active" : "", row.lane.lane === keyed ? "keyed" : "", chosen.has(row.lane.lane) ? "chosen" : ""].join(" ");
                return (
                    <div class={`lane ${is}`} key={row.lane.lane} style={style} title={visible(row.label)}>
                        <bdi>{visible(row.label)}</bdi>
                    </div>
                );
            })}
        </div>
    );
}
