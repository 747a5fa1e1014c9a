//! What made a flight recorder save is explained first, or the report shows why it cannot be.

use std::fmt::Write as _;

use whyslow_explain::{Query, Report, Trigger, explain};
use whyslow_model::Window;
use whyslow_model::tables::MetadataRow;
use whyslow_model::trigger;
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::text_in_memory;

use crate::it::requests;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// Facts in the order of [`trigger::ALL`]: text, time, condition, kind, thread, process, duration,
/// name.
fn facts(condition: &str, kind: &str, (tid, end, dur): (i32, i64, i64)) -> Vec<(String, String)> {
    let values = [
        format!("{condition}: reported by the recorder"),
        end.to_string(),
        condition.to_owned(),
        kind.to_owned(),
        tid.to_string(),
        tid.to_string(),
        dur.to_string(),
    ];
    let keys = trigger::ALL.iter().map(|key| (*key).to_owned());
    keys.zip(values).collect()
}

/// `victim` opens files in 0.1 ms each, once in 150 ms at 5 s; `writer` needs 3 s for an fsync.
fn calls(facts: &[(String, String)], further: &str) -> MemoryTables {
    let mut text = String::new();
    text.push_str("0.500000 [0] state_process tid=7 pid=7 comm=victim\n");
    text.push_str("0.500000 [1] state_process tid=9 pid=9 comm=writer\n");
    let mut call = |(cpu, tid): (i32, i32), (at, us): (i64, i64), what: &str| {
        let name = what.split(' ').next().unwrap_or_default();
        for (event, at) in [
            (format!("syscall_enter name={what}"), at),
            (format!("syscall_exit name={name} ret=3"), at + us),
        ] {
            let (seconds, us) = (at / 1_000_000, at % 1_000_000);
            let _ = writeln!(
                text,
                "{seconds}.{us:06} [{cpu}] (tid={tid} pid={tid}) {event}"
            );
        }
    };
    for second in 1..5 {
        for part in 0..20 {
            let at = second * 1_000_000 + part * 10_000;
            call((0, 7), (at, 100), "openat path=/srv/a flags=0");
        }
    }
    call(
        (0, 7),
        (5_000_000, 150_000),
        "openat path=/srv/slow flags=0",
    );
    call((1, 9), (10_000_000, 3_000_000), "fsync fd=3");
    text.push_str(further);
    let mut lines: Vec<&str> = text.lines().collect();
    let time = |line: &str| {
        line.split(' ')
            .next()
            .and_then(|time| time.parse::<f64>().ok())
    };
    lines.sort_by(|one, other| time(one).partial_cmp(&time(other)).expect("numbers"));
    let facts = facts.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "meta {key}=\"{value}\"");
        text
    });
    let imported = text_in_memory(&format!("{facts}{}\n", lines.join("\n")));
    let info = RecordingInfo {
        begin_ns: SECOND / 2,
        end_ns: 20 * SECOND,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&imported.rows, &imported.symbols, info)
}

fn report(tables: &MemoryTables) -> Report {
    explain(tables, &Query::default(), None).expect("an answer")
}

fn missing(report: &Report) -> &str {
    let trigger = report.trigger.as_ref().expect("a trigger");
    let missing = trigger.missing.as_deref().expect("a reason");
    assert!(report.caveats.iter().any(|caveat| caveat == missing));
    assert!(report.findings.iter().all(|finding| !finding.is_trigger));
    missing
}

#[test]
fn the_call_that_met_the_condition_comes_first() {
    let longest = report(&calls(&[], ""));
    assert_eq!(longest.trigger, None);
    assert_eq!(longest.findings[0].target.actor.name, "writer");
    assert!(longest.findings.iter().all(|finding| !finding.is_trigger));
    let facts = facts("open>100ms", "call", (7, 5150 * MS, 150 * MS));
    let tables = calls(&facts, "");
    let found = report(&tables);
    let first = &found.findings[0];
    assert!(first.is_trigger);
    assert!(
        first
            .verdict
            .starts_with("the trigger (open>100ms): openat(/srv/slow) by victim[7] took 150 ms"),
        "{}",
        first.verdict
    );
    let shown = found.trigger.as_ref().expect("a trigger");
    assert_eq!(shown.id, first.target.id);
    assert_eq!(shown.condition.as_deref(), Some("open>100ms"));
    assert_eq!(
        (shown.ts_ns, shown.dur_ns),
        (Some(5150 * MS), Some(150 * MS))
    );
    assert_eq!(
        Trigger::read(&tables).expect("a trigger").as_ref(),
        Some(shown)
    );
    // The others follow, once each.
    let marked = found.findings.iter().filter(|finding| finding.is_trigger);
    assert_eq!(marked.count(), 1);
    let same = found.findings.iter();
    let same = same.filter(|finding| finding.target.id == first.target.id);
    assert_eq!(same.count(), 1);
    assert!(
        found
            .findings
            .iter()
            .any(|one| one.target.actor.name == "writer")
    );
}

#[test]
fn a_trigger_that_is_not_slow_comes_first_too() {
    let facts = facts("open>0ms", "call", (7, 1000 * MS + MS / 10, MS / 10));
    let found = report(&calls(&facts, ""));
    let first = &found.findings[0];
    assert!(first.is_trigger, "{}", first.verdict);
    assert!(
        first.verdict.contains("openat(/srv/a)"),
        "{}",
        first.verdict
    );
    assert_eq!(first.target.begin_ns, SECOND);
}

#[test]
fn a_window_without_the_trigger_has_no_finding_of_it() {
    let facts = facts("open>100ms", "call", (7, 5150 * MS, 150 * MS));
    let query = Query {
        window: Some(Window::new(9 * SECOND, 15 * SECOND)),
        ..Query::default()
    };
    let found = explain(&calls(&facts, ""), &query, None).expect("an answer");
    assert!(found.findings.iter().all(|finding| !finding.is_trigger));
    assert!(found.trigger.is_some_and(|trigger| trigger.id.is_some()));
}

#[test]
fn a_trigger_without_a_row_has_a_reason() {
    let at = |end| facts("open>100ms", "call", (7, end, 150 * MS));
    let unknown = report(&calls(&at(8 * SECOND), ""));
    assert!(missing(&unknown).contains("no row of its thread"));
    let cut = report(&calls(&at(600 * MS), ""));
    assert!(missing(&cut).contains("it began before the recording"));
    let loss = "7.900000 [-] lost kind=events until=7.950000 count=3\n";
    let lost = report(&calls(&at(8 * SECOND), loss));
    assert!(missing(&lost).contains("events were lost"));
    // Facts of an earlier version: a text only, and a marker.
    let old =
        "8.000000 [-] marker name=mark text=\"open>100ms: openat by victim 7/7 took 150.0 ms\"\n";
    let text = "open>100ms: openat by victim 7/7 took 150.0 ms".to_owned();
    let old = report(&calls(&[(trigger::TEXT.into(), text)], old));
    assert!(missing(&old).contains("did not store"));
    let shown = old.trigger.expect("a trigger");
    assert_eq!(shown.condition.as_deref(), Some("open>100ms"));
    assert_eq!(shown.ts_ns, Some(8 * SECOND));
    assert_eq!(old.marks, []);
    let pressure = &facts("psi.io>40", "pressure", (0, 8 * SECOND, 0))[..4];
    let pressure = report(&calls(pressure, ""));
    assert!(missing(&pressure).contains("pressure concerns the whole machine"));
}

/// The recording of `requests.rs`, saved because of its first request, which is not slow.
fn of_requests(facts: &[(String, String)], is_named: bool) -> Report {
    let mut imported = requests::imported(900);
    if !is_named {
        for row in &mut imported.rows.request {
            row.endpoint = None;
        }
    }
    for (id, (key, value)) in facts.iter().enumerate() {
        imported.rows.metadata.push(MetadataRow {
            id: 1000 + id as i64,
            source: None,
            key: imported.symbols.intern(key),
            value: imported.symbols.intern(value),
        });
    }
    report(&requests::tables(&imported))
}

#[test]
fn a_request_is_found_by_its_start() {
    // Its end is later: the condition was met at the first late write.
    let facts = facts("request>5ms", "request", (10, 1010 * MS, 10 * MS));
    let found = of_requests(&facts, true);
    let first = &found.findings[0];
    assert!(first.is_trigger);
    assert_eq!(first.target.id.as_deref(), Some("request:0"));
    assert!(
        first
            .verdict
            .starts_with("the trigger (request>5ms): request 0"),
        "{}",
        first.verdict
    );
    assert!(found.findings[1].verdict.contains("40 of 400 requests"));
}

#[test]
fn a_requested_save_has_no_trigger_to_explain() {
    let facts = [
        (trigger::TEXT.to_owned(), trigger::REQUESTED.to_owned()),
        (trigger::TIME.to_owned(), (15 * SECOND).to_string()),
    ];
    let found = report(&calls(&facts, ""));
    let shown = found.trigger.expect("a trigger");
    assert_eq!((shown.condition, shown.missing), (None, None));
    assert_eq!(shown.ts_ns, Some(15 * SECOND));
    assert!(found.findings.iter().all(|finding| !finding.is_trigger));
}

#[test]
fn a_requested_save_has_the_slowest_request_first_though_only_sockets_show_it() {
    let facts = [(trigger::TEXT.to_owned(), trigger::REQUESTED.to_owned())];
    let is_of_request = |report: &Report| report.findings[0].target.kind == "request";
    let found = of_requests(&facts, false);
    assert!(is_of_request(&found), "{}", found.findings[0].verdict);
    let target = &found.findings[0].target;
    assert!(target.end_ns - target.begin_ns > 900 * MS, "{target:?}");
    assert!(is_of_request(&of_requests(&facts, true)));
}

#[test]
fn the_first_slow_operation_near_a_marker_is_named() {
    let further = "4.900000 [-] marker name=mark text=\"deployed 2.4.1\"\n\
                   5.100000 [-] marker name=mark text=\"in the middle\"\n\
                   14.00000 [-] marker name=mark text=\"all is calm\"\n\
                   14.50000 [-] marker name=app:begin text=\"n=1\"\n";
    let found = report(&calls(&[], further));
    let texts: Vec<&str> = found.marks.iter().map(|mark| mark.text.as_str()).collect();
    assert_eq!(texts, ["deployed 2.4.1", "in the middle", "all is calm"]);
    let [deployed, middle, calm] = <[_; 3]>::try_from(found.marks).expect("three");
    assert_eq!(
        deployed.summary,
        format!(
            "first slow operation near it: openat(/srv/slow) ({}) took 150 ms and started 100 ms after it",
            deployed.id.as_deref().expect("an id")
        )
    );
    assert!(
        middle.summary.ends_with("was in progress"),
        "{}",
        middle.summary
    );
    assert_eq!(middle.id, deployed.id);
    assert_eq!((calm.id, calm.ts_ns), (None, 14 * SECOND));
    assert!(calm.summary.starts_with("no slow request"));
}
