//! Operations are compared only with those of the same result.

use std::fmt::Write as _;

use whyslow_explain::{Finding, Query, Report, explain};
use whyslow_test_recordings::Recorded;

/// Calls of one thread, one after another: name, return value, duration in µs.
fn trace(calls: &[(&str, i64, i64)]) -> String {
    let mut text = String::from("0.500000 [0] state_process tid=10 pid=10 comm=make\n");
    let mut at_us = 1_000_000;
    for (name, ret, us) in calls {
        let mut event = |at_us: i64, event: String| {
            let (seconds, us) = (at_us / 1_000_000, at_us % 1_000_000);
            let _ = writeln!(
                text,
                "{seconds}.{us:06} [0] (tid=10 pid=10 comm=make) {event}"
            );
        };
        event(
            at_us,
            format!("syscall_enter name={name} path=/usr/bin/make"),
        );
        event(at_us + us, format!("syscall_exit name={name} ret={ret}"));
        at_us += us + 10;
    }
    text
}

fn explained(calls: &[(&str, i64, i64)]) -> Report {
    let made = Recorded::of_text(&trace(calls));
    explain(&made.recording, &Query::default(), None).expect("an answer")
}

fn of_call<'r>(report: &'r Report, name: &str) -> Vec<&'r Finding> {
    let findings = report.findings.iter();
    findings
        .filter(|finding| finding.target.what.starts_with(name))
        .collect()
}

/// Programs along the search path: most do not exist.
fn executed(real_us: i64) -> Vec<(&'static str, i64, i64)> {
    let mut calls = Vec::new();
    for number in 0..60 {
        calls.extend([("execve", -2, 2); 37]);
        calls.push(("execve", 0, real_us + 10 * (number % 7)));
    }
    calls
}

#[test]
fn calls_that_fail_at_once_do_not_make_the_others_slow() {
    let report = explained(&executed(3_040));
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

#[test]
fn a_slow_one_is_compared_with_those_of_its_result() {
    let mut calls = executed(3_040);
    calls[37].2 = 90_000;
    let report = explained(&calls);
    let [finding] = of_call(&report, "execve")[..] else {
        panic!("{:#?}", report.findings);
    };
    let group = finding.group.as_ref().expect("a group");
    assert_eq!(group.count, 1, "{group:?}");
    let baseline = finding.baseline.as_ref().expect("a baseline");
    assert_eq!((baseline.count, baseline.result.as_str()), (60, "ok"));
    assert_eq!(baseline.of, "successful execve by make");
    assert!(baseline.median_ns > 2_900_000, "{baseline:?}");
    // The same for that call alone.
    let made = Recorded::of_text(&trace(&calls));
    let query = Query {
        operation: Some(("syscall".into(), 37)),
        ..Query::default()
    };
    let one = explain(&made.recording, &query, None).expect("an answer");
    let alone = one.findings[0].baseline.as_ref().expect("a baseline");
    assert_eq!(alone.result, "ok");
    assert!(alone.median_ns > 2_900_000, "{alone:?}");
}

#[test]
fn a_slow_failure_is_compared_with_failures_of_its_kind() {
    let mut calls = executed(3_040);
    calls[5].2 = 40_000;
    let report = explained(&calls);
    let [finding] = of_call(&report, "execve")[..] else {
        panic!("{:#?}", report.findings);
    };
    let baseline = finding.baseline.as_ref().expect("a baseline");
    assert_eq!((baseline.result.as_str(), baseline.count), ("ENOENT", 2220));
    assert_eq!(baseline.of, "execve by make failing with ENOENT");
    assert!(
        finding.verdict.contains("with ENOENT, n = 2220"),
        "{}",
        finding.verdict
    );
    let group = finding.group.as_ref().expect("a group");
    assert_eq!(group.operation, "execve by make failing with ENOENT");
}

#[test]
fn without_enough_of_a_result_there_is_no_baseline() {
    // Five real reads among many that found nothing: nothing shows that they are slow.
    let mut calls = vec![("pread64", -11, 2); 500];
    calls.extend([("pread64", 100, 20_000); 5]);
    let report = explained(&calls);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}
