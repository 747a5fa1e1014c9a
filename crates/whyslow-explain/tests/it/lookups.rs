//! Rare DNS lookups of five seconds, detected from profiles of the shop alone; and no observations
//! without them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use whyslow_explain::{Confidence, Grade, Query, Report, explain};
use whyslow_ingest::import_in_memory;
use whyslow_store::{MemoryTables, RecordingInfo};

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("lookups").join(name)
}

fn dumps(state: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(fixture(state).join("dumps")).expect("dumps");
    files.map(|entry| entry.expect("a file").path()).collect()
}

fn explained(sources: &[PathBuf], query: &Query) -> Report {
    let imported = import_in_memory(sources).expect("it can be imported");
    let info = RecordingInfo {
        end_ns: i64::MAX / 2,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&imported.rows, &imported.symbols, info);
    explain(&tables, query, None).expect("an explanation")
}

fn slow(kind: &str) -> usize {
    let truth = fs::read_to_string(fixture("slow/truth.json")).expect("its log");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    truth[kind]["slow"].as_array().expect("requests").len()
}

#[test]
fn slow_requests_below_a_lookup_are_one_finding() {
    for (kind, sources, request) in [
        (
            "chrometrace",
            vec![fixture("slow/pyspy.chrometrace.gz")],
            "handle",
        ),
        (
            "speedscope",
            vec![fixture("slow/pyspy.speedscope.gz")],
            "handle",
        ),
        ("dumps", dumps("slow"), "handle"),
    ] {
        let report = explained(&sources, &Query::default());
        assert_eq!(report.findings.len(), 1, "{kind}: {:?}", report.findings);
        let finding = &report.findings[0];
        let verdict = &finding.verdict;
        assert!(
            verdict.contains("getaddrinfo (called by "),
            "{kind}: {verdict}"
        );
        assert!(verdict.contains("connect_database)"), "{kind}: {verdict}");
        // The shop could not log requests that were still in progress at the end of the profile.
        let of_group = finding.group.as_ref().expect("a group");
        let count = of_group.count as usize;
        assert!(
            count >= slow(kind) && count <= slow(kind) + 4,
            "{kind}: {count}"
        );
        let words = format!("; {count} of {count} slow runs of {request} (of ");
        assert!(verdict.contains(&words), "{kind}: {verdict}");
        let part = &finding.parts[0];
        assert_eq!(
            (part.mechanism.as_str(), part.grade),
            ("dns_lookup", Grade::B)
        );
        assert_eq!(finding.confidence, Confidence::Medium);
        let length = (finding.target.end_ns - finding.target.begin_ns) as f64 / 1e9;
        // Dumps are a second apart, and samples were later than in the speedscope file.
        let exact = match kind {
            "dumps" => 1.0,
            "speedscope" => 0.7,
            _ => 0.5,
        };
        assert!((length - 5.0).abs() < exact, "{kind}: {length}");
        if kind != "dumps" {
            let caveats = finding.caveats.join("\n");
            assert!(caveats.contains("resolver timeout"), "{kind}: {caveats}");
        }
        let hop = &finding.chain[0];
        assert!(
            hop.stack[0].ends_with("getaddrinfo"),
            "{kind}: {:?}",
            hop.stack
        );
        assert!(
            hop.stack[1..]
                .iter()
                .any(|frame| frame.ends_with("load_order"))
        );
        // The looked-up name is not reported, because samples do not show it.
        assert!(!format!("{finding:?}").contains("db.internal"));
    }
}

/// rbspy samples one thread at a time, and does not know C functions in Ruby 3.1.
#[test]
fn who_was_not_seen_in_the_middle_of_a_request_waited_in_what_it_had_called() {
    let report = explained(&[fixture("slow/rbspy.raw.gz")], &Query::default());
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    let finding = &report.findings[0];
    assert!(
        finding
            .target
            .what
            .ends_with("(called by connect_database)"),
        "{}",
        finding.target.what
    );
    // The unnamed function does not become a culprit.
    assert_eq!(
        (finding.culprit, finding.confidence),
        (None, Confidence::None)
    );
    assert_eq!(finding.chain[0].grade, Grade::C);
    let count = finding.group.as_ref().expect("a group").count;
    // For the other lookups, the next sample is no longer in the same request.
    assert!(count >= 1 && count <= slow("rbspy") as u64, "{count}");
    let length = (finding.target.end_ns - finding.target.begin_ns) as f64 / 1e9;
    assert!((length - 5.0).abs() < 0.5, "{length}");
    let caveats = finding.caveats.join("\n");
    assert!(caveats.contains("one thread at a time"), "{caveats}");
}

/// stackprof takes no samples in calls that release the interpreter lock, so there is no observation.
#[test]
fn what_a_profiler_missed_is_no_finding() {
    let imported = import_in_memory(&[fixture("slow/stackprof.dump")]).expect("a profile");
    let missed = imported
        .anomalies
        .iter()
        .find(|one| one.name == "SAMPLES_MISSED");
    assert!(missed.is_some_and(|one| one.count > 100), "{missed:?}");
    let report = explained(&[fixture("slow/stackprof.dump")], &Query::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_healthy_profile_has_no_finding() {
    for sources in [
        vec![fixture("fine/pyspy.chrometrace.gz")],
        vec![fixture("fine/pyspy.speedscope.gz")],
        vec![fixture("fine/stackprof.dump.gz")],
        vec![fixture("fine/rbspy.raw.gz")],
        dumps("fine"),
    ] {
        let report = explained(&sources, &Query::default());
        assert!(
            report.findings.is_empty(),
            "{sources:?} {:?}",
            report.findings
        );
    }
}

/// Idle workers wait for work all the time, which is no observation, however short the requested
/// minimum is.
#[test]
fn threads_that_wait_for_work_are_no_story_when_waits_are_asked_for() {
    let query = Query {
        min: Some(100_000_000),
        ..Query::default()
    };
    let report = explained(&[fixture("slow/pyspy.chrometrace.gz")], &query);
    assert!(!report.findings.is_empty());
    for finding in &report.findings {
        assert_ne!(
            finding.parts[0].mechanism, "lock_program",
            "{}",
            finding.verdict
        );
    }
}

#[test]
fn a_call_can_be_asked_for_by_name() {
    let of = |call: &str| {
        let query = Query {
            calls: vec![call.to_owned()],
            min: Some(500_000_000),
            ..Query::default()
        };
        explained(&[fixture("slow/pyspy.chrometrace.gz")], &query)
    };
    assert_eq!(of("getaddrinfo").findings.len(), 1);
    assert!(of("connect").findings.is_empty());
}

/// A program that looks up a name repeatedly; the last query is lost.
const LOST: &str = "\
1.000000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=client
1.000300 [0] (tid=10 pid=10 comm=client) syscall_enter name=socket family=2 socket_type=2
1.000400 [0] (tid=10) syscall_exit name=socket ret=3
1.000500 [0] (tid=10) syscall_enter name=connect fd=3 sockaddr=10.0.0.1:53
1.000600 [0] (tid=10) syscall_exit name=connect ret=0
1.000700 [0] (tid=10) syscall_enter name=sendto fd=3 count=40
1.000800 [0] (tid=10) syscall_exit name=sendto ret=40
1.001000 [0] (tid=10) syscall_enter name=poll
1.002000 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
6.002000 [0] irq_enter kind=hrtimer nr=0 name=hrtimer_wakeup
6.002000 [0] sched_waking tid=10
6.002100 [0] irq_exit kind=hrtimer nr=0
6.002200 [0] sched_switch prev=0 prev_state=R next=10
6.010000 [0] (tid=10) syscall_exit name=poll ret=0
6.010100 [0] (tid=10 pid=10 comm=client) lookup since=1.000200 function=getaddrinfo host=db.example
";
const USUAL: usize = 23;

fn lost() -> String {
    let begin = "whyslow-text 1\n0.100000 [0] state_process tid=10 pid=10 comm=client\n";
    let usual = (0..USUAL).map(|number| {
        let at = 0.2 + number as f64 / 100.0;
        format!(
            "{:.6} [0] (tid=10 pid=10 comm=client) lookup since={at:.6} function=getaddrinfo host=db.example\n",
            at + 0.003
        )
    });
    let usual: String = usual.collect();
    format!("{begin}{usual}{LOST}")
}

#[test]
fn a_lookup_of_the_kernels_events_is_a_story_though_its_call_waits_as_servers_do() {
    let folder = tempfile::tempdir().expect("room");
    let source = folder.path().join("trace.txt");
    fs::write(&source, lost()).expect("room");
    let sources = [source];
    let report = explained(&sources, &Query::default());
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    let finding = &report.findings[0];
    assert!(
        finding
            .verdict
            .starts_with("DNS lookup of db.example by client[10] took 5.01 s"),
        "{}",
        finding.verdict
    );
    let id = format!("dns:{USUAL}");
    assert_eq!(finding.target.id.as_deref(), Some(id.as_str()));
    let baseline = finding.baseline.as_ref().expect("others");
    assert_eq!(baseline.count as usize, USUAL + 1);
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(part.mechanism, "dns_lookup");
    assert_eq!(part.culprit.name, "10.0.0.1:53");
    let group = finding.group.as_ref().expect("a group");
    assert_eq!((group.count, group.dur_ns_max), (1, 5_009_900_000));
    // The same lookup by id.
    let query = Query {
        operation: Some(("dns_lookup".into(), USUAL as i64)),
        ..Query::default()
    };
    let again = explained(&sources, &query);
    assert_eq!(again.findings[0].verdict, finding.verdict);
}

/// A program that queries a name server itself, thirty times with a reply after 2 ms and once
/// without one: it closes the socket after five seconds.
fn queries_of_own_resolver() -> String {
    let mut text = String::from("whyslow-text 1\n");
    let mut line = |ns: u64, event: &str| {
        let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let _ = writeln!(text, "{s}.{ns:09} [0] (tid=7 pid=7 comm=shop) {event}");
    };
    for query in 0..31_u64 {
        let at = 1_000_000_000 + query * 10_000_000;
        line(at, "syscall_enter name=socket family=2 socket_type=2");
        line(at + 1_000, "syscall_exit name=socket ret=3");
        line(
            at + 2_000,
            "syscall_enter name=connect fd=3 sockaddr=10.0.0.1:53",
        );
        line(at + 3_000, "syscall_exit name=connect ret=0");
        line(at + 10_000, "syscall_enter name=write fd=3 count=29");
        line(at + 11_000, "syscall_exit name=write ret=29");
        let end = at + if query < 30 { 2_000_000 } else { 5_000_000_000 };
        if query < 30 {
            line(end, "syscall_enter name=read fd=3 count=512");
            line(end + 1_000, "syscall_exit name=read ret=45");
        }
        line(end + 10_000, "syscall_enter name=close fd=3");
        line(end + 11_000, "syscall_exit name=close ret=0");
    }
    text
}

#[test]
fn a_question_without_an_answer_is_a_story_though_nobody_called_the_c_library() {
    let folder = tempfile::tempdir().expect("room");
    let source = folder.path().join("trace.txt");
    fs::write(&source, queries_of_own_resolver()).expect("room");
    let report = explained(&[source], &Query::default());
    let is_it = |finding: &&whyslow_explain::Finding| finding.target.kind == "query";
    let finding = report.findings.iter().find(is_it).expect("a finding");
    let verdict = &finding.verdict;
    assert!(
        verdict.starts_with("DNS query to name server 10.0.0.1:53 by shop[7] took 5.00 s"),
        "{verdict}"
    );
    assert!(
        verdict.ends_with("n = 30): the server did not reply"),
        "{verdict}"
    );
    assert_eq!(finding.confidence, Confidence::Medium);
    assert_eq!(finding.parts[0].culprit.name, "10.0.0.1:53");
}
