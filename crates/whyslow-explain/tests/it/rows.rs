//! Rows other than system calls are explained by their ids.

use whyslow_explain::{Finding, Query, explain};
use whyslow_test_recordings::Recorded;

const CASES: &str = include_str!("rules/cases/block.txt");
/// A read of `victim` that waits for two writes of `backup`.
const CASE: &str = "the disk serves two writes of backup first";
const MS: i64 = 1_000_000;

fn trace() -> &'static str {
    let case = CASES.split("## ").find(|case| case.starts_with(CASE));
    let (_, trace) = case.and_then(|case| case.split_once("---\n")).expect(CASE);
    trace
}

/// The findings of the first rows of a table.
fn findings(table: &str) -> Vec<Finding> {
    let made = Recorded::of_text(trace());
    let mut found = Vec::new();
    for id in 0..20 {
        let query = Query {
            recording: "t.wsl".into(),
            operation: Some((table.to_owned(), id)),
            ..Query::default()
        };
        if let Ok(report) = explain(&made.recording, &query, None) {
            found.extend(report.findings);
        }
    }
    found
}

fn longest(findings: Vec<Finding>, of: &str) -> Finding {
    let by = findings
        .into_iter()
        .filter(|finding| finding.target.actor.name == of);
    by.max_by_key(|finding| finding.target.end_ns - finding.target.begin_ns)
        .expect(of)
}

#[test]
fn a_block_request_waits_behind_requests_of_others() {
    let finding = longest(findings("block_io"), "victim");
    let target = &finding.target;
    assert_eq!(
        (target.kind.as_str(), target.what.as_str()),
        ("block", "read of 4 KiB on 8:0")
    );
    assert_eq!(target.end_ns - target.begin_ns, 402 * MS);
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(
        (part.culprit.name.as_str(), part.culprit.tid),
        ("backup", Some(20))
    );
    assert!((300 * MS..=303 * MS).contains(&part.dur_ns), "{part:?}");
    let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
    assert_eq!(sum, 402 * MS, "every instant counts once");
    let id = target.id.as_deref().expect("an id");
    assert!(id.starts_with("block:"), "{id}");
    assert_eq!(finding.reproduce, format!("whyslow explain t.wsl -w {id}"));
}

#[test]
fn a_thread_state_is_explained_like_the_window_of_its_thread() {
    let finding = longest(findings("thread_state"), "victim");
    let target = &finding.target;
    assert_eq!(
        (target.kind.as_str(), target.what.as_str()),
        ("thread", "uninterruptible sleep")
    );
    assert!(
        finding
            .verdict
            .starts_with("uninterruptible sleep of victim[10] (400 ms): "),
        "{}",
        finding.verdict
    );
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(part.culprit.name, "backup");
}

#[test]
fn a_row_without_a_thread_is_refused() {
    assert!(findings("file_life").is_empty());
    assert!(findings("irq").is_empty());
}
