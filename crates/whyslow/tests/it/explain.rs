//! `explain` on the command line, in all formats.

use std::fmt::Write as _;

use serde_json::Value;

use crate::common::Place;

fn recording_of_fixture() -> String {
    let trace = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    trace.to_str().expect("a path").to_owned()
}

/// The bundled incident, imported.
fn incident(place: &Place) -> String {
    let trace = recording_of_fixture();
    place.stdout(&["import", &trace, "-o", "web.wsl", "--quiet"]);
    "web.wsl".to_owned()
}

/// Violations of a schema in a document; supports the part of JSON Schema that is used here.
fn wrong(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices
            .iter()
            .any(|choice| wrong(choice, value, place).is_empty());
        return if fits {
            Vec::new()
        } else {
            vec![format!("{place}: {value} is none of {choices:?}")]
        };
    }
    if let Some(words) = schema["enum"].as_array() {
        return if words.contains(value) {
            Vec::new()
        } else {
            vec![format!("{place}: {value}")]
        };
    }
    if !schema["const"].is_null() {
        return if schema["const"] == *value {
            Vec::new()
        } else {
            vec![format!("{place}: {value}")]
        };
    }
    let of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        other => panic!("{place}: type {other:?}"),
    };
    if !of_type {
        return vec![format!("{place}: {value} is no {}", schema["type"])];
    }
    let mut found = Vec::new();
    if let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for required in schema["required"].as_array().into_iter().flatten() {
            let name = required.as_str().unwrap_or("");
            if !fields.contains_key(name) {
                found.push(format!("{place}: no {name}"));
            }
        }
        for (name, field) in fields {
            match properties.get(name) {
                Some(property) => found.extend(wrong(property, field, &format!("{place}.{name}"))),
                None => found.push(format!("{place}.{name} is missing")),
            }
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{place}[{number}]");
        let of_place = &schema["prefixItems"][number];
        let items = if of_place.is_null() {
            &schema["items"]
        } else {
            of_place
        };
        found.extend(wrong(items, item, &at));
    }
    found
}

#[test]
fn the_slow_open_of_the_incident_is_put_down_to_sync() {
    let place = Place::new();
    let recording = incident(&place);
    let report: Value =
        serde_json::from_str(&place.stdout(&["explain", &recording, "--json"])).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!(finding["target"]["what"], "request 124");
    assert_eq!(finding["target"]["actor"]["tid"], 243);
    let culprit = &finding["parts"][finding["culprit"].as_u64().expect("a place") as usize];
    assert_eq!(culprit["culprit"]["name"], "sync");
    assert_eq!(culprit["culprit"]["pid"], 339);
    assert_eq!(culprit["object"]["name"], "sda");
    assert_eq!(culprit["grade"], "B");
    let length = culprit["dur_ns"].as_i64().expect("ns");
    assert!((157_000_000..158_200_000).contains(&length), "{length}");
    let parts = finding["parts"].as_array().expect("parts");
    let sum: i64 = parts
        .iter()
        .map(|part| part["dur_ns"].as_i64().expect("ns"))
        .sum();
    let [begin, end] =
        ["begin_ns", "end_ns"].map(|name| finding["target"][name].as_i64().expect("ns"));
    assert_eq!(sum, end - begin);
    // LTTng's daemons wrote the trace on the same machine: 32.898 ms on one CPU of 14.802 s, by a
    // sum over the table with another program.
    let share = report["tracer_share"].as_f64().expect("a share");
    assert!((share - 0.002_223).abs() < 0.000_002, "{share}");
}

#[test]
fn the_json_form_is_as_its_schema_says() {
    let place = Place::new();
    let recording = incident(&place);
    let schema: Value =
        serde_json::from_str(&place.stdout(&["schema", "explanation"])).expect("JSON");
    for args in [
        vec!["explain", &recording, "--json"],
        vec![
            "explain",
            &recording,
            "--json",
            "--slow",
            "open>100ms|sync>1s",
        ],
        vec!["explain", &recording, "--json", "--vs", "+0s..+5s"],
        vec!["explain", &recording, "--json", "-d", "sda"],
        vec!["explain", &recording, "--json", "-w", "+9s+1s", "-t", "243"],
    ] {
        let report: Value = serde_json::from_str(&place.stdout(&args)).expect("JSON");
        let wrong = wrong(&schema, &report, "report");
        assert!(wrong.is_empty(), "{args:?}: {wrong:#?}");
    }
}

#[test]
fn what_is_different_from_another_window_is_the_excess() {
    let place = Place::new();
    let recording = incident(&place);
    let slow = ["explain", &recording, "--json", "--slow", "openat>100ms"];
    let before = [&slow[..], &["--vs", "+0s..+5s"]].concat();
    let report: Value = serde_json::from_str(&place.stdout(&before)).expect("JSON");
    let versus = &report["findings"][0]["versus"];
    assert_eq!(versus["per"], "call");
    let mean = versus["mean_there_ns"].as_i64().expect("ns");
    assert!((5_000..100_000).contains(&mean), "{mean}");
    let first = &versus["differences"][0];
    assert_eq!(first["mechanism"], "sync_storm");
    assert_eq!(first["culprit"]["name"], "sync");
    assert_eq!(first["there_ns"], 0);
    let here = first["here_ns"].as_i64().expect("ns");
    assert!((157_000_000..158_200_000).contains(&here), "{here}");

    // A copy is another recording, so its processes match by name only.
    let window = ["explain", &recording, "--json", "-w", "+9s+1s", "-t", "243"];
    place.stdout(&[
        "import",
        &recording_of_fixture(),
        "-o",
        "other.wsl",
        "--quiet",
    ]);
    let compared = [&window[..], &["--vs", "other.wsl", "--vs", "+9s+1s"]].concat();
    let report: Value = serde_json::from_str(&place.stdout(&compared)).expect("JSON");
    let versus = &report["findings"][0]["versus"];
    assert_eq!(versus["per"], "second");
    assert!(
        versus["there"].as_i64().expect("a number") > 1,
        "all apache2"
    );
    for difference in versus["differences"].as_array().expect("differences") {
        assert!(difference["culprit"]["pid"].is_null(), "{difference}");
    }
    // It did not become @last, although it was opened later.
    let last: Value = serde_json::from_str(&place.stdout(&["explain", "--json"])).expect("JSON");
    assert_eq!(last["recording"], "web.wsl");
}

#[test]
fn what_to_compare_with_is_one_window_and_one_recording() {
    let place = Place::new();
    let recording = incident(&place);
    for (flags, expected) in [
        (
            vec!["--vs", "nonsense"],
            "`nonsense` is neither a recording nor a window",
        ),
        (vec!["--vs", "gone.wsl"], "gone.wsl"),
        (
            vec!["--vs", "+0s..+1s", "--vs", "+1s..+2s"],
            "accepts one of each",
        ),
        (vec!["--vs", "+0s..+1s", "-d", "sda"], "--dev"),
    ] {
        let all = [&["explain", recording.as_str()], flags.as_slice()].concat();
        let output = place.whyslow().args(&all).output().expect("a run");
        assert!(!output.status.success(), "{flags:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
}

#[test]
fn the_ticket_form_has_the_verdict_and_the_parts() {
    let place = Place::new();
    let recording = incident(&place);
    let ticket = place.stdout(&["explain", &recording, "--format", "md", "-n", "1"]);
    assert!(
        ticket.contains("## 1. sync (pid 339) ran sync() for 1.46 s"),
        "{ticket}"
    );
    assert!(
        ticket.contains("**Who:** apache2 (pid 243): request 124 took 161 ms"),
        "{ticket}"
    );
    assert!(ticket.contains("| B | sync_storm | sync[339]"), "{ticket}");
    assert!(
        ticket.contains("whyslow explain web.wsl --request 124"),
        "{ticket}"
    );
}

#[test]
fn the_page_is_short_and_the_evidence_is_on_request() {
    let place = Place::new();
    let recording = incident(&place);
    let page = place.stdout(&["explain", &recording, "-n", "1"]);
    let first = page.lines().next().expect("a line");
    for part in [
        "web.wsl · host boardhost · 2026-11-21 ",
        "(14.8 s) · 0 events lost",
    ] {
        assert!(first.contains(part), "{part}: {page}");
    }
    let finding = page.split("\n\n").nth(1).expect("a finding");
    assert!(finding.lines().count() <= 20, "{page}");
    assert!(
        finding.starts_with(
            "1  WHY   sync (pid 339) ran sync() for 1.46 s and most likely flushed dirty pages to sda."
        ),
        "{page}"
    );
    let labels = ["WHO ", "SURE ", "NOW ", "FIX ", "NEXT "];
    for label in labels {
        assert!(finding.contains(label), "{label}: {page}");
    }
    assert!(page.contains("\nfine: CPU "), "{page}");
    assert!(
        page.contains("not recorded: memory (add --what +mem)"),
        "{page}"
    );
    assert!(!page.contains("sync_storm"), "{page}");
    for args in [
        &["explain", &recording, "-n", "1", "--wide"][..],
        &["explain", &recording, "-w", "op:73778"],
    ] {
        let all = place.stdout(args);
        for part in ["sync_storm", "where the time went", "[B: block:", "NEXT "] {
            assert!(all.contains(part), "{part}: {all}");
        }
    }
    let ascii = place.stdout(&["explain", &recording, "--ascii"]);
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn json_and_text_have_the_same_sentences() {
    let place = Place::new();
    let recording = incident(&place);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let report: Value =
        serde_json::from_str(&place.stdout(&["explain", &recording, "--json"])).expect("JSON");
    // With all evidence, no sentence is cut.
    let text = words(&place.stdout(&["explain", &recording, "--wide"]));
    let markdown = words(&place.stdout(&["explain", &recording, "--format", "md"]));
    for finding in report["findings"].as_array().expect("findings") {
        for sentence in ["why", "who", "sure"] {
            let sentence = finding[sentence].as_str().expect("a sentence");
            assert!(text.contains(&words(sentence)), "{sentence}: {text}");
            assert!(
                markdown.contains(&words(sentence)),
                "{sentence}: {markdown}"
            );
        }
    }
}

#[test]
fn what_cannot_be_explained_is_refused_with_what_can() {
    let place = Place::new();
    let recording = incident(&place);
    let check = |args: &[&str], expected: &str| {
        let output = place.whyslow().args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?}");
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    check(
        &["explain", &recording, "-w", "op:99999999"],
        "no operation 99999999",
    );
    check(
        &["explain", &recording, "-w", "+1s+1s", "-t", "4711"],
        "no thread 4711",
    );
    check(
        &["explain", &recording, "-w", "file:1"],
        "not a call, request or wait of a known thread",
    );
    check(&["explain", &recording, "--slow", "open"], "open>100ms");
    check(
        &["explain", &recording, "--slow", ">1s"],
        "names no system call",
    );
    check(&["explain", &recording, "--csv"], "text, json and md");
    check(&["explain", "--why", "nonsense"], "--why list");
    let text = place.stdout(&["explain", "--why", "lock_inode"]);
    assert!(text.contains("xfs_ilock()"), "{text}");
}

/// Exit status and standard output.
fn ended(place: &Place, args: &[&str]) -> (Option<i32>, String) {
    let output = place.whyslow().args(args).output().expect("it runs");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("UTF-8"),
    )
}

#[test]
fn what_cannot_be_judged_is_the_first_line_and_exit_status_3() {
    let place = Place::new();
    let locks = "whyslow-text 1\n\
        1.0 [0] state_process tid=7 pid=7 comm=app\n\
        1.2 [0] (tid=7 pid=7 comm=app) lock_wait kind=mutex lock=0xff00 since=1.100000000\n\
        1.4 [0] (tid=7 pid=7 comm=app) lock_wait kind=mutex lock=0xff00 since=1.300000000\n";
    place.write("locks.txt", locks);
    for form in ["text", "md"] {
        let (code, text) = ended(&place, &["explain", "locks.txt", "--format", form]);
        assert_eq!(code, Some(3), "{text}");
        let first = text.lines().next().unwrap_or_default();
        let said = "cannot tell: slow operations unavailable: system calls not recorded";
        assert!(first.starts_with(said), "{text}");
        assert!(!text.contains("no operation took much longer"), "{text}");
    }
    let (code, json) = ended(&place, &["explain", "locks.txt", "--json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(code, Some(3));
    assert_eq!(report["judged"], "cannot_tell");
    assert_eq!(report["reasons"][0]["id"], "calls_not_recorded");
    // Calls of which none is slow.
    let mut calls = String::from("whyslow-text 1\n");
    for number in 0..30 {
        let _ = writeln!(
            calls,
            "1.{number:02}0 [0] (tid=7 pid=7 comm=app) syscall_enter name=pread64 fd=3 count=1\n\
             1.{number:02}1 [0] (tid=7 pid=7 comm=app) syscall_exit name=pread64 ret=1"
        );
    }
    place.write("calls.txt", calls);
    let (code, text) = ended(&place, &["explain", "calls.txt"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("no operation took much longer"), "{text}");
    let (_, json) = ended(&place, &["explain", "calls.txt", "--json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["judged"], "nothing_slow");
}

#[test]
fn the_longest_rows_of_other_kinds_are_explained_by_their_ids() {
    let place = Place::new();
    let recording = incident(&place);
    for (kind, verb, what) in [
        ("block", "top", " on "),
        ("states", "top", " of "),
        ("sched", "top", "wait for a CPU of "),
    ] {
        let rows = place.stdout(&[kind, verb, &recording, "-n", "1", "--csv", "--cols", "id"]);
        let row = rows.lines().nth(1).expect("a row");
        let id = row.split(',').next().expect("an id");
        let text = place.stdout(&["explain", &recording, "-w", id, "--json"]);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let finding = &report["findings"][0];
        assert_eq!(finding["target"]["id"], id);
        let verdict = finding["verdict"].as_str().expect("a sentence");
        assert!(verdict.contains(what), "{verdict}");
        let reproduce = finding["reproduce"].as_str().expect("a command");
        assert!(reproduce.ends_with(&format!("-w {id}")), "{reproduce}");
    }
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let place = Place::new();
    let trace = "whyslow-text 1\n\
        1.0 [0] (tid=7 pid=7 comm=\"a\\x1b[31m\") syscall_enter name=openat path=\"/x\\x1b]0;y\\x07`|<b>\"\n\
        1.9 [0] (tid=7 pid=7) syscall_exit name=openat ret=3\n";
    std::fs::write(place.join("t.txt"), trace).expect("room");
    for form in ["text", "md"] {
        let text = place.stdout(&["explain", "t.txt", "--format", form]);
        assert!(text.contains("openat("), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        if form == "md" {
            assert!(!text.contains("<b>"), "{text}");
        }
    }
}

/// What the documents show is what the program prints.
#[test]
fn the_pages_of_the_documents_are_those_of_the_program() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = Place::new();
    std::fs::copy(recording_of_fixture(), place.join("trace.tar.zst")).expect("room");
    incident(&place);
    for (document, name) in [
        ("README.md", "trace.tar.zst"),
        ("docs/case-studies/sync-storm.md", "web.wsl"),
    ] {
        let text = std::fs::read_to_string(root.join(document)).expect("it is there");
        let page = place.stdout(&["explain", name, "-n", "1"]);
        assert!(text.contains(&page), "{document} lacks:\n{page}");
    }
}
