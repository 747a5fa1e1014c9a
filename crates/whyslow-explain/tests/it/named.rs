//! Findings of threads that are selected by name.

use std::fmt::Write as _;

use whyslow_explain::{Query, Report, explain};
use whyslow_test_recordings::Recorded;

/// Three processes with a slow open each, 100 ms apart.
fn recorded() -> Recorded {
    let mut trace = String::new();
    for (number, (tid, pid, comm)) in [(10, 10, "fetcher"), (30, 30, "logger"), (20, 20, "flusher")]
        .into_iter()
        .enumerate()
    {
        let begin = 100.0 + number as f64 * 0.1;
        let thread = format!("(tid={tid} pid={pid} comm={comm})");
        let _ = writeln!(
            trace,
            "{begin:.9} [0] {thread} syscall_enter name=openat path=\"/tmp/{comm}\" flags=0\n\
             {:.9} [0] {thread} syscall_exit name=openat ret=3",
            begin + 0.05
        );
    }
    Recorded::of_text(&trace)
}

fn explained(comms: &[&str], pids: &[i32]) -> Result<Report, whyslow_analysis::AnalysisError> {
    let query = Query {
        calls: vec!["openat".into()],
        min: Some(10_000_000),
        comms: comms.iter().map(ToString::to_string).collect(),
        pids: pids.to_vec(),
        ..Query::default()
    };
    explain(&recorded().recording, &query, None)
}

fn victims(comms: &[&str], pids: &[i32]) -> Vec<String> {
    let report = explained(comms, pids).expect("an answer");
    let findings = report.findings.iter();
    let mut names: Vec<String> = findings
        .map(|finding| finding.target.actor.name.clone())
        .collect();
    names.sort();
    names
}

#[test]
fn a_glob_selects_threads_by_their_name() {
    assert_eq!(victims(&[], &[]).len(), 3);
    assert_eq!(victims(&["fetcher"], &[]), ["fetcher"]);
    assert_eq!(victims(&["f*"], &[]), ["fetcher", "flusher"]);
    assert_eq!(victims(&["logger", "flusher"], &[]), ["flusher", "logger"]);
    // Both conditions hold, as with the filters of queries.
    assert_eq!(victims(&["f*"], &[10]), ["fetcher"]);
}

#[test]
fn a_name_that_does_not_occur_is_an_error() {
    for (comms, pids) in [(&["mysqld"][..], &[][..]), (&["logger"], &[20])] {
        let error = explained(comms, pids).expect_err("no such thread");
        assert!(error.to_string().contains("a name that matches"), "{error}");
    }
}
