import assert from "node:assert/strict";
import { test } from "node:test";

import { isRecorded, joinedOptions, pageState, reasonText, recordCommand, stateTitle } from "../../src/topic_states";
import type { Kind, RecordingInfo, TopicState } from "../../src/types";
import { compact } from "../../src/units";

function kind(name: string, state: TopicState, count: number | null): Kind {
    const record_with = state === "not_recorded" ? `--what +${name}` : null;
    return { kind: name, verbs: ["top"], recorded: state === "recorded", state, count, reason: state === "recorded" ? null : `no ${name}`, record_with };
}

const RECORDING = {
    kinds: [kind("locks", "not_recorded", null), kind("dns", "none_happened", 0), kind("io", "recorded", 52_369), kind("cpu", "recorded", 7), kind("sched", "unknown", null)],
} as unknown as RecordingInfo;

test("a page has one of three states, and the reason", () => {
    const locks = pageState(["locks"], RECORDING);
    assert.deepEqual(locks, { state: "not_recorded", count: null, reason: "no locks", recordWith: "--what +locks" });
    assert.ok(!isRecorded(locks.state));
    assert.equal(recordCommand(locks.recordWith), "whyslow record --what +locks");
    const dns = pageState(["dns"], RECORDING);
    assert.deepEqual([dns.state, dns.count, isRecorded(dns.state)], ["none_happened", 0, true]);
    assert.deepEqual(pageState(["io"], RECORDING), { state: "recorded", count: 52_369, reason: null, recordWith: null });
});

test("a page is as usable as its best kind", () => {
    assert.deepEqual(pageState(["sched", "cpu"], RECORDING), { state: "recorded", count: 7, reason: null, recordWith: null });
    assert.equal(pageState(["sched", "locks"], RECORDING).state, "unknown");
    // Pages about no kind, as explain, and recordings that are not known yet.
    assert.equal(pageState([], RECORDING).state, "recorded");
    assert.equal(pageState(["io"], null).state, "recorded");
});

test("an instruction is not a command", () => {
    assert.equal(recordCommand("`whyslow record --what +locks` records them"), "whyslow record --what +locks");
    assert.equal(reasonText("unknown", "cannot tell: no state"), "Cannot tell: no state.");
    assert.equal(reasonText("none_happened", null), "None happened.");
    assert.equal(recordCommand("enable the tracepoint lock:contention_begin"), null);
    assert.equal(recordCommand(null), null);
    assert.equal(stateTitle("none_happened"), "none happened");
});

test("options of several topics are one command", () => {
    assert.equal(joinedOptions(["--what +locks", "--what +net", "--what +locks"]), "--what +locks,+net");
    assert.equal(joinedOptions(["--what +mem", "--stacks 1ms"]), "--what +mem --stacks 1ms");
    assert.equal(joinedOptions([]), null);
});

test("counts in labels are short", () => {
    for (const [count, wanted] of [
        [0, "0"],
        [950, "950"],
        [1000, "1.0k"],
        [12_345, "12.3k"],
        [999_990, "1.0M"],
        [123_456, "123k"],
        [4_100_000, "4.1M"],
    ] as const) {
        assert.equal(compact(count), wanted);
    }
});
