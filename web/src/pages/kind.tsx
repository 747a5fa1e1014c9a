import type { Parameters } from "../api";
import { kindsOf, recording } from "../app";
import { useAnswer } from "../query";
import { AnswerView } from "../components/answer";
import { Flames } from "../components/flames";
import { HeatMaps } from "../components/heats";
import { LaneChart } from "../components/lanes";
import { Pending } from "../components/problem";
import { ThreadLanes } from "../components/threads";
import { Waterfall } from "../components/waterfall";
import { Tabs } from "../components/tabs";
import { common, setOption, view } from "../state";
import { pageInfo, type PageInfo, type Tab, tabOf } from "../tabs";
import { chosenThreads } from "../threads";
import type { Answer } from "../types";

/** A page about one kind: lanes over time, and its queries as tabs. */
export function KindPage({ page }: { readonly page: PageInfo }) {
    const tab = tabOf(view.value);
    const kinds = kindsOf(recording.value);
    const tabs = page.tabs.map((one) => ({ ...one, isMissing: !kinds.has(one.what) }));
    if (!tab) return null;
    const parameters = { ...tab.parameters, ...comparedWith(page, tab.id), ...common.value, ...threadFilter(page) };
    return (
        <>
            {page.id === "threads" && <ThreadLanes />}
            {page.track && page.id !== "threads" && <LaneChart key={page.track} track={page.track} />}
            <Tabs label={page.title} tabs={tabs} active={tab.id} onChoose={(id) => setOption("tab", id)}>
                <Content key={tab.id} tab={tab} parameters={parameters} />
            </Tabs>
        </>
    );
}

function Content({ tab, parameters }: { tab: Tab; parameters: Parameters }) {
    if (tab.chart === "flame") return <Flames parameters={{ ...common.value, ...threadFilter(pageInfo("threads")) }} />;
    if (tab.chart === "waterfall") return <Waterfall parameters={parameters} />;
    if (tab.chart !== "heat") return <AnswerView what={tab.what} verb={tab.verb} parameters={parameters} />;
    return tab.what === "block" ? <DeviceMaps parameters={parameters} /> : <HeatMaps what={tab.what} parameters={parameters} />;
}

/** A map for each active device. */
function DeviceMaps({ parameters }: { parameters: Parameters }) {
    const query = useAnswer<Answer>("table", { what: "block", view: "usage", ...common.value });
    const names = (query.answer?.tables[0]?.rows ?? []).flatMap((row) => (typeof row["dev"] === "string" ? [row["dev"]] : []));
    if (!query.answer) return <Pending what="Loading devices…" />;
    return <HeatMaps what="block" parameters={parameters} each={{ key: "dev", values: [...new Set(names)] }} />;
}

/** Parameters for the threads that match the pattern on the page. */
function threadFilter(page: PageInfo): Parameters {
    return page.id === "threads" ? chosenThreads.value : {};
}

/** The device to compare with, if one is selected. */
function comparedWith(page: PageInfo, tab: string): Parameters {
    const other = view.value.options["beside"];
    return page.id === "block" && tab === "block-hist" && other && view.value.filter["dev"] ? { vs: other } : {};
}
