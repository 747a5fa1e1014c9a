import type { Parameters } from "../api";
import { recording } from "../app";
import { useAnswer } from "../query";
import { AnswerView } from "../components/answer";
import { Flames } from "../components/flames";
import { HeatMaps } from "../components/heats";
import { LaneChart } from "../components/lanes";
import { Pending } from "../components/problem";
import { ThreadLanes } from "../components/threads";
import { Tabs } from "../components/tabs";
import { WhyNone } from "../components/topic_state";
import { Waterfall } from "../components/waterfall";
import { common, setOption, view } from "../state";
import { pageInfo, type PageInfo, type Tab, tabOf } from "../tabs";
import { chosenThreads } from "../threads";
import { isRecorded, kindState, pageState, recordCommand, stateTitle } from "../topic_states";
import type { Answer } from "../types";

/** A page about one kind: lanes over time, and its queries as tabs. */
export function KindPage({ page }: { readonly page: PageInfo }) {
    const tab = tabOf(view.value);
    const tabs = page.tabs.map((one) => ({ ...one, ...tabState(one) }));
    const { state, reason, recordWith } = pageState(page.kinds, recording.value);
    if (!tab) return null;
    if (!isRecorded(state)) return <WhyNone state={state} reason={reason} recordWith={recordWith} />;
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

/** Tabs whose events were not recorded are disabled; the title has the reason. */
function tabState(tab: Tab): { readonly isMissing: boolean; readonly hint?: string } {
    const kind = kindState(tab.what, recording.value);
    if (!kind || isRecorded(kind.state)) return { isMissing: false };
    const command = recordCommand(kind.record_with) ?? kind.record_with;
    return { isMissing: true, hint: [kind.reason ?? stateTitle(kind.state), command].filter(Boolean).join(": ") };
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
