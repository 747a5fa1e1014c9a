import "./app.css";

import { render } from "preact";

import { onKey } from "./actions";
import { Api, Http, takeToken } from "./api";
import { clock, failure, load, recording, recordings } from "./app";
import { Bookmarks } from "./components/bookmarks";
import { dialog } from "./components/dialogs";
import { Frame } from "./components/frame";
import { Help, Palette } from "./components/palette";
import { Pending, Problem } from "./components/problem";
import { Search } from "./components/search";
import { ExplainPage } from "./pages/explain";
import { FleetPage } from "./pages/fleet";
import { KindPage } from "./pages/kind";
import { SqlPage } from "./pages/sql";
import { openIsland, reportElement } from "./island";
import { go, view } from "./state";
import { pageInfo } from "./tabs";
import { parseSpan } from "./times";

function App() {
    return (
        <>
            <Frame>
                <Page />
            </Frame>
            {dialog.value === "search" && <Search />}
            {dialog.value === "bookmarks" && <Bookmarks />}
            {dialog.value === "palette" && <Palette />}
            {dialog.value === "help" && <Help />}
        </>
    );
}

function Page() {
    if (failure.value) return <Problem failure={failure.value} />;
    // Needs no recording.
    if (view.value.page === "fleet") return <FleetPage />;
    if (!recordings.value || clock.value.begin === 0n) return <Pending what="Opening the recording…" />;
    document.title = `${recording.value?.name ?? ""} – whyslow`;
    const { page } = view.value;
    if (page === "explain") return <ExplainPage />;
    if (page === "sql") return <SqlPage />;
    return <KindPage key={page} page={pageInfo(page)} />;
}

const place = document.getElementById("app");
if (place) {
    render(<App />, place);
    addEventListener("keydown", onKey);
    void begin();
}

/** A report contains its responses; other pages request them from their server. */
async function begin(): Promise<void> {
    const element = reportElement();
    if (!element) return load(new Api(new Http(takeToken())));
    const island = await openIsland(element);
    await load(new Api(island));
    const window = parseSpan(island.window ?? "");
    if (window && !view.value.window) go({ window }, true);
}
