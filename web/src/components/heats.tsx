import { useMemo, useState } from "preact/hooks";

import type { Parameters } from "../api";
import { clock, shown } from "../app";
import { useAnswer } from "../query";
import { HeatMap, latencyRange, readGrid } from "../charts/index";
import { go, setOption, view } from "../state";
import { heatColumns } from "../tabs";
import { theme } from "../theme";
import type { Answer, AnswerTable } from "../types";
import { Box, type BoxOf } from "./box";
import { Pending, Problem } from "./problem";
import { Table } from "./table";

interface Props {
    readonly what: string;
    readonly parameters: Parameters;
    /** One map per value, such as a device name, on a common scale. */
    readonly each?: { readonly key: string; readonly values: readonly string[] };
}

/** Heat maps of time by latency; several maps have a common scale, so that the outlier stands out. */
export function HeatMaps({ what, parameters, each }: Props) {
    const [box, setBox] = useState<BoxOf | null>(null);
    const isIntensity = view.value.options["weight"] === "intensity";
    const values = each && each.values.length > 0 ? each.values : [null];
    return (
        <section class="heats">
            <p class="actions" role="group" aria-label="weight of a cell">
                <button type="button" aria-pressed={!isIntensity} onClick={() => setOption("weight", null)}>
                    count
                </button>
                <button type="button" aria-pressed={isIntensity} onClick={() => setOption("weight", "intensity")}>
                    total time
                </button>
                <span class="quiet">drag a box to explain it; Ctrl+drag sets a baseline</span>
            </p>
            <Maps what={what} parameters={parameters} values={values} keyed={each?.key ?? ""} isIntensity={isIntensity} onBox={setBox} />
            {box && <Box box={box} what={what} onClose={() => setBox(null)} />}
        </section>
    );
}

interface MapsProps {
    readonly what: string;
    readonly parameters: Parameters;
    readonly values: readonly (string | null)[];
    readonly keyed: string;
    readonly isIntensity: boolean;
    readonly onBox: (box: BoxOf | null) => void;
}

/** Maximum number of maps; a filter selects further devices. */
const MAPS_MAX = 12;

function Maps(props: MapsProps) {
    const shownValues = props.values.slice(0, MAPS_MAX);
    const [tables, setTables] = useState<Readonly<Record<string, AnswerTable>>>({});
    const grids = useMemo(
        () => Object.fromEntries(Object.entries(tables).map(([key, table]) => [key, readGrid(table, clock.value)])),
        [tables, clock.value],
    );
    const known = Object.values(grids);
    const range = latencyRange(known.filter((grid) => grid.total > 0));
    const most = known.reduce((top, grid) => Math.max(top, props.isIntensity ? grid.mostIntensity : grid.mostCount), 1);
    return (
        <div class={shownValues.length > 1 ? "maps several" : "maps"}>
            {shownValues.map((value) => {
                const key = value ?? "";
                const parameters = value === null ? props.parameters : { ...props.parameters, [props.keyed]: value };
                const grid = grids[key];
                return (
                    <OneMap
                        key={key}
                        what={props.what}
                        isOneOfSeveral={value !== null}
                        parameters={parameters}
                        onTable={(table) => setTables((before) => ({ ...before, [key]: table }))}
                    >
                        {grid && (
                            <HeatMap
                                label={value ?? props.what}
                                grid={grid}
                                clock={clock.value}
                                window={shown.value}
                                weight={props.isIntensity ? "intensity" : "count"}
                                range={range}
                                most={most}
                                height={shownValues.length > 1 ? 150 : 260}
                                baseline={view.value.baseline}
                                theme={theme.version.value}
                                isDark={theme.name.value === "dark"}
                                onBox={(drawn) =>
                                    props.onBox({
                                        window: drawn.range,
                                        filter: { min: `${drawn.fromNs}ns`, max: `${drawn.toNs}ns`, ...(value === null ? {} : { [props.keyed]: value }) },
                                    })
                                }
                                onWindow={(window, isDone) => go({ window }, !isDone)}
                                onAll={() => go({ window: null })}
                                onBaseline={(baseline) => go({ baseline })}
                            />
                        )}
                    </OneMap>
                );
            })}
            {props.values.length > MAPS_MAX && <p class="quiet">{props.values.length - MAPS_MAX} more devices; use a filter to show them</p>}
        </div>
    );
}

interface OneProps {
    readonly what: string;
    readonly isOneOfSeveral: boolean;
    readonly parameters: Parameters;
    readonly onTable: (table: AnswerTable) => void;
    readonly children: preact.ComponentChildren;
}

function OneMap({ what, isOneOfSeveral, parameters, onTable, children }: OneProps) {
    const [isTable, setTable] = useState(false);
    const query = useAnswer<Answer>("heat", { what, columns: heatColumns(isOneOfSeveral), ...parameters });
    const table = query.answer?.tables[0] ?? null;
    useMemo(() => table && queueMicrotask(() => onTable(table)), [table]);
    if (query.failure) return <Problem failure={query.failure} />;
    if (!table) return query.isPending ? <Pending what="Computing the heat map…" /> : <p class="quiet none">{query.answer?.caveats.join("; ") ?? "no data in this window"}</p>;
    return (
        <div class={query.isPending ? "twins stale" : "twins"}>
            <button type="button" class="twin" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                {isTable ? "chart" : "table"}
            </button>
            {isTable ? <Table table={table} rowsShown={10} /> : children}
        </div>
    );
}
