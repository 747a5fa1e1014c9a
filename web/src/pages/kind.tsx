import type { Parameters } from "../api";
import { kindsOf, recording } from "../app";
import { AnswerView } from "../components/answer";
import { Tabs } from "../components/tabs";
import { common, setOption, view } from "../state";
import { type PageInfo, tabOf } from "../tabs";

/** A page about one kind: lanes over time, and its questions as tabs. */
export function KindPage({ page }: { readonly page: PageInfo }) {
    const tab = tabOf(view.value);
    const kinds = kindsOf(recording.value);
    const tabs = page.tabs.map((one) => ({ ...one, isMissing: !kinds.has(one.what) }));
    if (!tab) return null;
    const parameters = { ...tab.parameters, ...beside(page, tab.id), ...common.value };
    return (
        <Tabs label={page.title} tabs={tabs} active={tab.id} onChoose={(id) => setOption("tab", id)}>
            <AnswerView key={tab.id} what={tab.what} verb={tab.verb} parameters={parameters} />
        </Tabs>
    );
}

/** Another device beside, where one is chosen for it. */
function beside(page: PageInfo, tab: string): Parameters {
    const other = view.value.options["beside"];
    return page.id === "block" && tab === "block-hist" && other && view.value.filter["dev"] ? { vs: other } : {};
}
