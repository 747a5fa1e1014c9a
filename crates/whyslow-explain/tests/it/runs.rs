//! Several runs of a program that one process starts are one culprit.

use std::fmt::Write as _;

use whyslow_explain::{Confidence, Finding, Query, explain};
use whyslow_model::Window;
use whyslow_test_recordings::Recorded;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

/// A thread that is queued for a CPU while three processes have it for 100 ms each.
fn finding(parent: &str, comms: [&str; 3]) -> Finding {
    let mut trace = String::from(
        "1.000000 [0] state_process tid=10 pid=10 comm=victim\n\
         1.000100 [0] sched_switch prev=0 next=10 prev_state=R next_comm=victim\n",
    );
    let mut before = 10;
    for (number, comm) in comms.into_iter().enumerate() {
        let (child, ms) = (31 + number, 10 + 100 * number);
        let _ = writeln!(
            trace,
            "1.{:03}000 [1] (tid=20 pid=20 comm={parent}) fork parent=20 parent_pid=20 \
             parent_comm={parent} child={child} child_pid={child} child_comm={comm}\n\
             1.{ms:03}000 [0] (tid={before}) sched_switch prev={before} prev_state=R next={child} \
             next_comm={comm}",
            ms - 5,
        );
        before = child;
    }
    let _ = writeln!(
        trace,
        "1.310000 [0] (tid={before}) sched_switch prev={before} prev_state=R next=10"
    );
    let _ = writeln!(
        trace,
        "1.320000 [0] (tid=10) sched_switch prev=10 prev_state=S next=0"
    );
    let query = Query {
        window: Some(Window::new(SECOND + 10 * MS, SECOND + 310 * MS)),
        tids: vec![10],
        ..Query::default()
    };
    let report = explain(&Recorded::of_text(&trace).recording, &query, None).expect("an answer");
    report.findings.into_iter().next().expect("a finding")
}

#[test]
fn the_time_of_several_runs_is_added_up() {
    let found = finding("backup", ["dd", "dd", "dd"]);
    assert_ne!(found.confidence, Confidence::None, "{}", found.verdict);
    assert_eq!(found.saved_at_most_ns, 300 * MS);
    assert!(
        found
            .page
            .why
            .contains("and 2 other runs of it, all started by backup")
    );
}

#[test]
fn near_misses_are_separate_culprits() {
    // Different programs, and the children of a server that forks.
    for (parent, comms) in [
        ("backup", ["dd", "tar", "gzip"]),
        ("postgres", ["postgres", "postgres", "postgres"]),
    ] {
        let found = finding(parent, comms);
        assert!(found.saved_at_most_ns <= 100 * MS, "{}", found.verdict);
        assert!(!found.page.why.contains("other runs"), "{}", found.page.why);
    }
}
