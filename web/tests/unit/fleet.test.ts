import assert from "node:assert/strict";
import { test } from "node:test";

import { shownCell } from "../../src/cells";
import { cellOf, readHosts, seenRows, shadeOf, valueAt } from "../../src/charts/host_grid";
import {
    binFor,
    commandsOf,
    fieldsOf,
    fleetCommand,
    type FleetInfo,
    fleetTab,
    fleetTabs,
    LAKE_CLOCK,
    leadOf,
    timeText,
    openOf,
    optionOf,
    parametersOf,
    parseLength,
    queryOf,
    rangeOf,
    rangeText,
} from "../../src/fleet";
import { readView, writeView } from "../../src/state";
import { axisText, dateTime } from "../../src/times";
import type { AnswerTable, RecordingInfo, Row } from "../../src/types";

const SECOND = 1_000_000_000n;
const T0 = 1_772_366_400n * SECOND;

const parameter = (name: string, flag = false) => ({ name, default: flag ? "false" : null, about: name, flag });
const info: FleetInfo = {
    lake: "/mnt/my lake",
    queries: [
        { name: "deviations", about: "", more: "", parameters: ["by", "op", "key"].map((name) => parameter(name)).concat(parameter("all", true)) },
        { name: "heat", about: "", more: "", parameters: [parameter("kind"), parameter("bin"), parameter("limit")] },
        { name: "of_tomorrow", about: "", more: "", parameters: [] },
    ],
};
const query = (name: string) => {
    const found = queryOf(info, name);
    assert.ok(found);
    return found;
};

function heat(rows: readonly Row[]): AnswerTable {
    return { name: "heat", title: "heat", form: "table", columns: [], rows, facts: {} };
}

const cell = (host: string, second: number, dur_p99_ns: number | null): Row => ({
    host,
    ts: String(T0 + BigInt(second) * SECOND),
    operations: 3,
    dur_p99_ns,
    recording: "01KJMMA2G00000000000000001",
});

test("a map has a line for each host, the worst first, and nothing where nothing was", () => {
    const rows = [cell("web-10", 0, 2000), cell("web-2", 10, 500), cell("web-2", 0, 1000), cell("db-1", 20, null), cell("web-1", 0, 1000)];
    const of = { measure: "dur_p99_ns", bin: 10n * SECOND, begin: T0 + 3n * SECOND, end: T0 + 30n * SECOND };
    const worst = readHosts(heat(rows), { ...of, order: "worst" });
    assert.deepEqual(worst.lines.map((line) => line.host), ["web-10", "web-1", "web-2", "db-1"]);
    assert.equal(worst.begin, T0);
    assert.deepEqual([worst.columns, worst.low, worst.high, worst.hasUnknown], [3, 500, 2000, true]);
    const named = readHosts(heat(rows), { ...of, order: "name" });
    assert.deepEqual(named.lines.map((line) => line.host), ["db-1", "web-1", "web-2", "web-10"]);
    const line = named.lines[2];
    assert.ok(line);
    assert.deepEqual([0, 1, 2].map((column) => cellOf(line, column)?.value ?? null), [1000, 500, null]);
    // An unknown duration has a cell without a value.
    assert.deepEqual(cellOf(named.lines[0] ?? line, 2)?.value, null);
});

test("cells outside of the map and rows that are none are left out", () => {
    const rows = [cell("web-1", -10, 5), cell("web-1", 30, 5), { host: null, ts: 1 }, { host: "web-1", ts: null }];
    const grid = readHosts(heat(rows), { measure: "dur_p99_ns", order: "worst", bin: 10n * SECOND, begin: T0, end: T0 + 30n * SECOND });
    assert.deepEqual([grid.lines.length, grid.high], [0, 0]);
});

test("shades grow with values, and the least is seen", () => {
    const grid = readHosts(heat([cell("a", 0, 1000), cell("b", 0, 1_000_000)]), { measure: "dur_p99_ns", order: "worst", bin: SECOND, begin: T0, end: T0 + SECOND });
    const shades = [0, 1000, 31_623, 1_000_000].map((value) => shadeOf(value, grid, 256));
    assert.deepEqual([shades[0], shades[3]], [0, 255]);
    assert.ok((shades[1] ?? 0) >= 30 && (shades[2] ?? 0) > 120 && (shades[2] ?? 0) < 160, String(shades));
    assert.equal(Math.round(valueAt(0.5, grid)), 31_623);
    const flat = readHosts(heat([cell("a", 0, 7)]), { measure: "dur_p99_ns", order: "worst", bin: SECOND, begin: T0, end: T0 + SECOND });
    assert.equal(shadeOf(7, flat, 256), 255);
});

test("of a thousand hosts only those in sight are drawn", () => {
    assert.deepEqual(seenRows(0, 468, 18, 1000), [0, 26]);
    assert.deepEqual(seenRows(9, 468, 18, 1000), [0, 27]);
    assert.deepEqual(seenRows(17_532, 468, 18, 1000), [974, 1000]);
    assert.deepEqual(seenRows(500, 468, 18, 3), [3, 3]);
});

test("cells are as short as pages and answers have room for", () => {
    assert.equal(binFor(15n * SECOND, 3), 1);
    assert.equal(binFor(3600n * SECOND, 10), 15);
    assert.equal(binFor(3600n * SECOND, 1000), 60);
    assert.equal(binFor(86_400n * SECOND, 1000), 900);
    assert.equal(binFor(0n, 0), 1);
    // Beyond the longest round step: whole weeks.
    assert.equal(binFor(86_400n * 365n * 40n * SECOND, 10) % 604_800, 0);
    assert.deepEqual(["10s", "5m", "250ms", "7", "0s", "x", "1.5s"].map(parseLength), [10n * SECOND, 300n * SECOND, 250_000_000n, 7n, null, null, null]);
});

test("the time of a map is that of the recordings, within the window", () => {
    const rows: Row[] = [
        { first_ts: String(T0 + 5n), last_ts: String(T0 + 50n) },
        { first_ts: String(T0), last_ts: String(T0 + 20n) },
        { first_ts: null, last_ts: null },
    ];
    assert.deepEqual(rangeOf(rows, null), { begin: T0, end: T0 + 50n });
    assert.deepEqual(rangeOf(rows, { begin: T0 + 10n, end: T0 + 900n }), { begin: T0 + 10n, end: T0 + 50n });
    assert.equal(rangeOf([], null), null);
    assert.equal(rangeOf(rows, { begin: T0 + 60n, end: T0 + 70n }), null);
});

test("choices are in the address, and none of them is taken for a filter", () => {
    const options = { tab: "deviations", hosts: "web-*", when: "-1h..", by: "rack", [optionOf("op")]: "read", all: "true" };
    const view = { recording: null, page: "fleet" as const, window: null, filter: {}, baseline: null, selected: null, options };
    assert.deepEqual(readView(writeView(view)), view);
    assert.equal(optionOf("op"), "for-op");
    assert.deepEqual(parametersOf(query("deviations"), { ...options, kind: "io", key: " " }), {
        query: "deviations",
        hosts: "web-*",
        window: "-1h..",
        by: "rack",
        op: "read",
        all: "true",
    });
});

test("tabs are the queries that the server has, and fields those of the query", () => {
    assert.deepEqual(fleetTabs(info).map((tab) => tab.id), ["heat", "deviations"]);
    assert.equal(fleetTab(info, {})?.id, "heat");
    assert.equal(fleetTab(info, { tab: "deviations" })?.id, "deviations");
    assert.equal(fleetTab(info, { tab: "no-such" })?.id, "heat");
    assert.equal(fleetTab({ lake: null, queries: [] }, {}), null);
    assert.deepEqual(fieldsOf(query("heat")).map((field) => field.label), ["hosts", "cluster", "window", "kind", "bin"]);
    assert.deepEqual(fieldsOf(query("deviations")).map((field) => field.isFlag), [false, false, false, false, false, false, true]);
});

test("queries of the page have a command with the same result, whatever the names", () => {
    const parameters = { query: "deviations", hosts: "web-*", window: "-1h..", all: "true", key: "it's" };
    assert.equal(
        fleetCommand("/mnt/my lake", parameters),
        "whyslow fleet deviations '--hosts=web-*' --window=-1h.. --all '--key=it'\\''s' --lake '/mnt/my lake'",
    );
});

test("a row leads to its recording by commands that can be copied", () => {
    const lead = leadOf({ host: "web-1", recording: "01M7", id: "op:17", ts: String(T0), dur: 5 });
    assert.deepEqual(lead, { host: "web-1", recording: "01M7", id: "op:17", when: { begin: T0, end: T0 + 5n } });
    assert.deepEqual(lead && commandsOf(lead, "s3://traces/lake"), [
        "whyslow fleet find 01M7 --lake s3://traces/lake",
        "whyslow fleet fetch 01M7 --lake s3://traces/lake",
        "whyslow explain web-1-01M7.wsl.tar.zst -w op:17",
    ]);
    const worst = leadOf({ host: "web-1; rm -rf *", recording: "01M7", worst_ts: String(T0) });
    assert.deepEqual(worst?.when, { begin: T0, end: T0 + SECOND });
    assert.equal(worst && commandsOf(worst, "l")[2], "whyslow explain 'web-1; rm -rf *-01M7.wsl.tar.zst' -w 2026-03-01T12:00:00Z..2026-03-01T12:00:01Z");
    assert.deepEqual(leadOf({ host: "web-1", recording: "01M7", ts: String(T0) }, 10n * SECOND)?.when, { begin: T0, end: T0 + 10n * SECOND });
    assert.equal(leadOf({ host: "web-1", operations: 3 }), null);
    assert.equal(leadOf({ host: "web-1", recording: "01M7" })?.when, null);
});

test("an open recording is meant if it is of the host and has the time", () => {
    const recording = (host: string | null, begin: bigint, end: bigint) => ({ id: `${host}`, host, begin_ns: String(begin), end_ns: String(end) }) as unknown as RecordingInfo;
    const open = [recording(null, T0, T0 + 100n * SECOND), recording("web-1", T0, T0 + 15n * SECOND)];
    const at = (ts: bigint, host = "web-1") => openOf({ host, recording: "01M7", id: null, when: { begin: ts, end: ts + SECOND } }, open);
    assert.deepEqual(at(T0 + 3n * SECOND)?.window, { begin: 3e9, end: 4e9 });
    assert.deepEqual(at(T0 - 500_000_000n)?.window, { begin: -5e8, end: 5e8 });
    assert.equal(at(T0 + 15n * SECOND), null);
    assert.equal(at(T0 + 3n * SECOND, "web-2"), null);
    // Without a time, the start encoded in the id decides.
    const begun = [recording("vm", 1_795_220_925_502_483_674n, 1_795_220_940_304_097_149n)];
    assert.deepEqual(openOf({ host: "vm", recording: "01M7XR2V1Y2TGHM28A5MW2T6T8", id: null, when: null }, begun)?.window, null);
    assert.equal(openOf({ host: "vm", recording: "01M7XR2V1Z2TGHM28A5MW2T6T8", id: null, when: null }, begun), null);
    assert.equal(openOf({ host: "vm", recording: "odd", id: null, when: null }, begun), null);
});

test("times of a lake have their dates, and go to windows without losing a nanosecond", () => {
    const column = { name: "ts", title: "ts", measure: "time_ns" as const };
    assert.equal(shownCell(String(T0), column, LAKE_CLOCK), "2026-03-01 12:00:00");
    assert.equal(shownCell("1795220935276742780", column, LAKE_CLOCK), "2026-11-21 00:28:55.276");
    assert.equal(dateTime(LAKE_CLOCK, String(T0 + 1n)), "2026-03-01 12:00:00.000");
    assert.equal(timeText(1_795_220_935_276_742_780n), "2026-11-21T00:28:55.27674278Z");
    assert.equal(rangeText({ begin: T0, end: T0 + 1n }), "2026-03-01T12:00:00Z..2026-03-01T12:00:00.000000001Z");
    assert.equal(axisText({ ...LAKE_CLOCK, begin: T0 }, 12 * 3600 * 1e9, 3600e9), "2026-03-02");
    assert.equal(axisText({ begin: T0, length: 1, zone: null }, 12 * 3600 * 1e9, 3600e9), "00:00:00");
});
