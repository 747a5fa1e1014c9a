//! Whether the recording could show what was slow.

use std::fmt::Write as _;

use whyslow_explain::{Judged, Query, Report, explain};
use whyslow_model::tables::Collected;
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::Recorded;

use crate::it::blank;

const ALL_CLEAR: &str = "no operation took much longer";

fn report(trace: &str, query: &Query) -> Report {
    let made = Recorded::of_text(trace);
    explain(&made.recording, query, None).expect("an answer")
}

/// Reads of a millisecond, ten per second, from second 1 to 5; each lasts a second more for each
/// of `slow`.
fn reads(slow: &[usize]) -> String {
    let mut text = String::from("0.900000 [0] state_process tid=10 pid=10 comm=app\n");
    for number in 0..40 {
        let at_us = 1_000_000 + 100_000 * number as i64;
        let us = if slow.contains(&number) {
            90_000
        } else {
            1_000
        };
        for (at_us, event) in [
            (at_us, "syscall_enter name=pread64 fd=3 count=100"),
            (at_us + us, "syscall_exit name=pread64 ret=100"),
        ] {
            let (seconds, us) = (at_us / 1_000_000, at_us % 1_000_000);
            let _ = writeln!(
                text,
                "{seconds}.{us:06} [0] (tid=10 pid=10 comm=app) {event}"
            );
        }
    }
    text
}

fn reason(report: &Report) -> &str {
    assert_eq!(report.judged, Judged::CannotTell);
    assert!(!report.caveats.iter().any(|one| one.contains(ALL_CLEAR)));
    report.reasons[0].id
}

#[test]
fn calls_of_which_none_is_slow_are_an_all_clear() {
    let report = report(&reads(&[]), &Query::default());
    assert_eq!(report.judged, Judged::NothingSlow);
    assert!(report.reasons.is_empty());
    assert!(
        report.caveats.iter().any(|one| one.contains(ALL_CLEAR)),
        "{:?}",
        report.caveats
    );
}

#[test]
fn a_slow_call_is_a_finding() {
    let report = report(&reads(&[7]), &Query::default());
    assert_eq!(report.judged, Judged::Findings);
    assert!(report.reasons.is_empty());
}

#[test]
fn locks_alone_do_not_show_what_was_slow() {
    let trace = "\
1.000000 [0] state_process tid=10 pid=10 comm=app
1.002000 [0] (tid=10 pid=10 comm=app) lock_wait kind=mutex lock=0xff00 since=1.001000000
3.002000 [0] (tid=10 pid=10 comm=app) lock_wait kind=mutex lock=0xff00 since=3.001000000
";
    let report = report(trace, &Query::default());
    assert_eq!(reason(&report), "calls_not_recorded");
    assert!(
        report.reasons[0]
            .summary
            .contains("system calls not recorded")
    );
    assert!(report.reasons[0].next.contains("whyslow record"));
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["judged"], "cannot_tell");
    assert_eq!(json["reasons"][0]["id"], "calls_not_recorded");
}

#[test]
fn scheduling_alone_does_not_either() {
    let trace = "\
1.000000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=app
1.001000 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
2.000000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=app
";
    assert_eq!(
        reason(&report(trace, &Query::default())),
        "calls_not_recorded"
    );
}

#[test]
fn a_window_without_calls_shows_nothing() {
    let query = Query {
        window: Some(Window::new(1_050_000_000, 1_090_000_000)),
        ..Query::default()
    };
    assert_eq!(reason(&report(&reads(&[]), &query)), "no_operations");
}

#[test]
fn most_of_the_time_must_not_be_lost() {
    let lost = |until: &str| {
        format!(
            "{}2.000000 [0] lost kind=events until={until} count=9 stream=a\n",
            ""
        )
    };
    let with = |until: &str| {
        let mut lines: Vec<String> = reads(&[]).lines().map(str::to_owned).collect();
        lines.push(lost(until).trim_end().to_owned());
        lines.sort();
        lines.join("\n") + "\n"
    };
    let report_of = |until: &str| report(&with(until), &Query::default());
    let much = report_of("4.500000000");
    assert_eq!(reason(&much), "events_lost");
    assert!(
        much.reasons[0].summary.contains("of the time"),
        "{:?}",
        much.reasons
    );
    // Little is reported elsewhere, and does not hide the rest.
    assert_eq!(report_of("2.050000000").judged, Judged::NothingSlow);
}

#[test]
fn counters_beside_recorded_topics_are_no_averages_of_another_tool() {
    let counters = "1.000000 [-] counters reported_by=iostat subject=vda interval=1000000000 values=\"%util 300 hundredths\"\n";
    let other = report(counters, &Query::default());
    assert_eq!(reason(&other), "averages_only");
    let own = report(&format!("meta topics=locks\n{counters}"), &Query::default());
    assert_eq!(reason(&own), "calls_not_recorded");
    let calls = format!("meta topics=locks,syscalls\n{counters}");
    let none = report(&calls, &Query::default());
    assert_eq!(reason(&none), "no_operations");
    assert!(
        none.reasons[0].summary.contains("none happened"),
        "{:?}",
        none.reasons
    );
}

#[test]
fn dns_lookups_alone_are_no_all_clear() {
    let mut trace = String::from("0.900000 [0] state_process tid=10 pid=10 comm=app\n");
    for second in 1..5 {
        let _ = writeln!(
            trace,
            "{second}.010000 [0] (tid=10 pid=10 comm=app) lookup since={second}.001 \
             function=getaddrinfo host=db code=0"
        );
    }
    let report = report(&trace, &Query::default());
    assert_eq!(reason(&report), "calls_not_recorded");
}

#[test]
fn requests_alone_allow_a_statement_about_requests() {
    let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
    for id in 0..100 {
        let span = (id, 1_000_000_000 + 100_000_000 * id, 20_000_000 + 1000 * id);
        let request = blank::request(span, ("server", "nginx"), &mut symbols);
        rows.request.push(request);
    }
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 12_000_000_000,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, &symbols, info);
    let report = explain(&tables, &Query::default(), None).expect("an answer");
    assert_eq!(report.judged, Judged::NothingSlow, "{:?}", report.patterns);
    assert!(!report.caveats.iter().any(|one| one.contains(ALL_CLEAR)));
    let is_limited = |one: &String| one.contains("no request took much longer");
    assert!(
        report.caveats.iter().any(is_limited),
        "{:?}",
        report.caveats
    );
}
