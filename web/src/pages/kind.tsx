import type { Parameters } from "../api";
import { kindsOf, recording } from "../app";
import { useAnswer } from "../ask";
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

/** A page about one kind: lanes over time, and its questions as tabs. */
export function KindPage({ page }: { readonly page: PageInfo }) {
    const tab = tabOf(view.value);
    const kinds = kindsOf(recording.value);
    const tabs = page.tabs.map((one) => ({ ...one, isMissing: !kinds.has(one.what) }));
    if (!tab) return null;
    const parameters = { ...tab.parameters, ...beside(page, tab.id), ...common.value, ...whose(page) };
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
    if (tab.chart === "flame") return <Flames parameters={{ ...common.value, ...whose(pageInfo("threads")) }} />;
    if (tab.chart === "waterfall") return <Waterfall parameters={parameters} />;
    if (tab.chart !== "heat") return <AnswerView what={tab.what} verb={tab.verb} parameters={parameters} />;
    return tab.what === "block" ? <DeviceMaps parameters={parameters} /> : <HeatMaps what={tab.what} parameters={parameters} />;
}

/** A map for each device that did anything. */
function DeviceMaps({ parameters }: { parameters: Parameters }) {
    const asked = useAnswer<Answer>("table", { what: "block", view: "usage", ...common.value });
    const names = (asked.answer?.tables[0]?.rows ?? []).flatMap((row) => (typeof row["dev"] === "string" ? [row["dev"]] : []));
    if (!asked.answer) return <Pending what="asking for devices" />;
    return <HeatMaps what="block" parameters={parameters} each={{ key: "dev", values: [...new Set(names)] }} />;
}

/** Threads that the pattern on the page leaves. */
function whose(page: PageInfo): Parameters {
    return page.id === "threads" ? chosenThreads.value : {};
}

/** Another device beside, where one is chosen for it. */
function beside(page: PageInfo, tab: string): Parameters {
    const other = view.value.options["beside"];
    return page.id === "block" && tab === "block-hist" && other && view.value.filter["dev"] ? { vs: other } : {};
}
