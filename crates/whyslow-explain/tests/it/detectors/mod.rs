//! Known patterns of behaviour are found where they occur, not where something similar does, and
//! not if the events that show them were not recorded.

use std::fmt::Write as _;

use whyslow_explain::{Judged, Observation, Query, Report, explain};
use whyslow_test_recordings::Recorded;

/// A trace that is written call by call.
struct Trace {
    text: String,
    at_us: u64,
}

const BEGIN_US: u64 = 1_000_000;

impl Trace {
    fn new() -> Self {
        let text = "1.000000 [0] state_process tid=10 pid=10 comm=server\n\
             1.000000 [0] state_process tid=11 pid=10 comm=worker\n\
             1.000000 [0] state_process tid=20 pid=20 comm=other\n"
            .to_owned();
        Self {
            text,
            at_us: BEGIN_US,
        }
    }

    fn event(&mut self, tid: u32, event: &str) {
        let (pid, comm) = match tid {
            10 => (10, "server"),
            11 => (10, "worker"),
            _ => (20, "other"),
        };
        let (seconds, us) = (self.at_us / 1_000_000, self.at_us % 1_000_000);
        let _ = writeln!(
            self.text,
            "{seconds}.{us:06} [0] (tid={tid} pid={pid} comm={comm}) {event}"
        );
        self.at_us += 1;
    }

    /// A call with its duration in µs.
    fn call(&mut self, tid: u32, name: &str, arguments: &str, ret: i64, us: u64) {
        self.event(tid, &format!("syscall_enter name={name} {arguments}"));
        self.at_us += us;
        self.event(tid, &format!("syscall_exit name={name} ret={ret}"));
    }

    fn open(&mut self, tid: u32, path: &str, flags: u32, fd: i64) {
        let arguments = format!("path={path} flags={flags}");
        self.call(tid, "openat", &arguments, fd, 5);
    }

    fn report(&self, query: &Query) -> Report {
        let made = Recorded::of_text(&self.text);
        explain(&made.recording, query, None).expect("an answer")
    }

    fn observations(&self) -> Vec<Observation> {
        self.report(&Query::default()).observations
    }

    fn found(&self, kind: &str) -> Option<Observation> {
        let mut observations = self.observations();
        observations.retain(|observation| observation.kind == kind);
        assert!(observations.len() <= 1, "{observations:#?}");
        observations.pop()
    }
}

fn number(observation: &Observation, name: &str) -> f64 {
    let found = observation.numbers.iter().find(|(of, _)| of == name);
    found.expect("a number").1
}

/// O_WRONLY | O_CREAT, O_APPEND with them.
const CREATE: u32 = 0o101;
const APPEND: u32 = 0o2001;

/// Files of 2 KiB that are written and read again, 70 in each of five folders.
fn temporary(deletes: bool, opens: bool) -> Trace {
    let mut trace = Trace::new();
    for folder in 0..5 {
        trace.at_us += 400_000;
        for file in 0..70 {
            let path = format!("/srv/cache/req-{folder}/part-{file:05}");
            if opens {
                trace.open(11, &path, CREATE, 7);
            }
            trace.call(11, "write", "fd=7 count=2048", 2048, 10);
            trace.call(11, "pread64", "fd=7 count=2048 offset=0", 2048, 10);
            trace.call(11, "close", "fd=7", 0, 1);
            if deletes {
                trace.call(11, "unlink", &format!("path={path}"), 0, 3);
            }
        }
    }
    trace
}

#[test]
fn files_that_live_for_a_moment_are_found_with_thread_and_bytes_a_burst() {
    let observation = temporary(true, true)
        .found("temporary_files")
        .expect("found");
    assert_eq!(observation.culprit.pid, Some(10));
    assert_eq!(observation.culprit.tid, Some(11));
    assert_eq!(
        observation.object.as_ref().expect("a pattern").name,
        "/srv/cache/req-*/part-*"
    );
    assert_eq!(number(&observation, "files"), 350.0);
    assert_eq!(number(&observation, "deleted"), 350.0);
    assert_eq!(number(&observation, "bytes_written"), 350.0 * 2048.0);
    assert_eq!(number(&observation, "bursts"), 5.0);
    assert_eq!(number(&observation, "bytes_per_burst"), 70.0 * 2048.0);
    // An open with O_CREAT succeeds on existing files, too.
    assert_eq!(number(&observation, "files_inferred"), 350.0);
    let summary = &observation.summary;
    assert!(summary.contains("350 of them inferred"), "{summary}");
}

#[test]
fn a_folder_that_all_files_share_has_its_own_name() {
    let mut trace = Trace::new();
    for file in 0..400 {
        let path = format!("/srv/node17/part-{file:05}");
        trace.open(11, &path, CREATE, 7);
        trace.call(11, "write", "fd=7 count=2048", 2048, 10);
        trace.call(11, "close", "fd=7", 0, 1);
        trace.call(11, "unlink", &format!("path={path}"), 0, 3);
    }
    let observation = trace.found("temporary_files").expect("found");
    let object = observation.object.expect("a pattern");
    assert_eq!(object.name, "/srv/node17/part-*");
}

#[test]
fn files_that_stay_are_results() {
    assert!(temporary(false, true).found("temporary_files").is_none());
}

#[test]
fn without_the_opens_nobody_knows_that_files_were_made() {
    assert!(temporary(true, false).found("temporary_files").is_none());
}

/// Writes of 16 KiB to one file, every `every_us` µs.
fn flood(path: &str, every_us: u64, returns: bool) -> Trace {
    let mut trace = Trace::new();
    trace.open(10, path, APPEND, 5);
    for _ in 0..2_500 {
        if returns {
            trace.call(10, "write", "fd=5 count=16384", 16384, 50);
        } else {
            trace.event(10, "syscall_enter name=write fd=5 count=16384");
        }
        trace.at_us += every_us - 50;
    }
    trace
}

#[test]
fn a_log_that_gets_more_than_a_disk_takes_is_found() {
    let observation = flood("/var/log/app.log", 500, true)
        .found("log_flood")
        .expect("found");
    assert_eq!(observation.culprit.name, "server");
    assert_eq!(observation.object.expect("a file").name, "/var/log/app.log");
}

#[test]
fn a_log_at_half_of_that_rate_and_a_file_that_is_no_log_are_none() {
    assert!(
        flood("/var/log/app.log", 2_000, true)
            .found("log_flood")
            .is_none()
    );
    assert!(
        flood("/srv/data/table.db", 500, true)
            .found("log_flood")
            .is_none()
    );
}

#[test]
fn without_the_returns_nobody_knows_what_was_written() {
    assert!(
        flood("/var/log/app.log", 500, false)
            .found("log_flood")
            .is_none()
    );
}

fn syncs(call: &str, each_us: u64) -> Trace {
    let mut trace = Trace::new();
    trace.open(20, "/srv/data/wal", CREATE, 4);
    for _ in 0..20 {
        trace.call(20, call, "fd=4", 0, each_us);
        trace.at_us += 100_000 - each_us;
    }
    trace
}

#[test]
fn who_synchronises_most_of_the_time_is_found() {
    let observation = syncs("fsync", 80_000)
        .found("fsync_neighbour")
        .expect("found");
    assert_eq!(observation.culprit.pid, Some(20));
    assert!((number(&observation, "busy_ratio") - 0.8).abs() < 0.05);
    assert!((number(&observation, "syncs_per_second") - 10.0).abs() < 1.0);
}

#[test]
fn quick_syncs_at_the_same_rate_disturb_nobody() {
    assert!(syncs("fsync", 10_000).found("fsync_neighbour").is_none());
    assert!(syncs("lseek", 80_000).found("fsync_neighbour").is_none());
}

fn names(every_us: u64) -> Trace {
    let mut trace = Trace::new();
    for place in 0..52_000 {
        let path = format!("path=/srv/app/lib-{place}.so");
        trace.call(10, "newfstatat", &path, -2, 1);
        trace.at_us += every_us - 3;
    }
    trace
}

#[test]
fn a_storm_of_names_is_found_and_the_same_names_slowly_are_none() {
    let observation = names(20).found("metadata_storm").expect("found");
    assert_eq!(observation.culprit.name, "server");
    assert_eq!(number(&observation, "failed_ratio"), 1.0);
    assert!(names(100).found("metadata_storm").is_none());
}

/// One process reads old parts of a file while another appends to it.
fn old_data(from_disk: bool, appends: bool) -> Trace {
    let mut trace = Trace::new();
    trace.open(10, "/srv/log/segment", 0, 6);
    trace.open(20, "/srv/log/segment", APPEND, 8);
    for place in 0..8 {
        trace.event(10, "syscall_enter name=pread64 fd=6 count=262144 offset=0");
        if from_disk {
            let sector = 1000 + place * 512;
            let about = format!("dev=8:0 sector={sector} sectors=512 rwbs=R");
            trace.event(10, &format!("block_getrq {about}"));
            trace.event(10, &format!("block_rq_issue {about}"));
            trace.at_us += 20_000;
            trace.event(10, &format!("block_rq_complete {about} error=0"));
        }
        trace.event(10, "syscall_exit name=pread64 ret=262144");
        if appends {
            trace.call(20, "write", "fd=8 count=4096", 4096, 10);
        }
    }
    trace
}

#[test]
fn old_data_from_the_disk_is_found_with_who_writes_meanwhile() {
    let observation = old_data(true, true).found("old_data").expect("found");
    assert_eq!(observation.culprit.name, "server");
    assert_eq!(number(&observation, "bytes_from_device"), 8.0 * 262_144.0);
    assert!(
        observation.summary.contains("other[20]"),
        "{}",
        observation.summary
    );
}

#[test]
fn data_from_memory_and_files_nobody_writes_are_no_such_thing() {
    assert!(old_data(false, true).found("old_data").is_none());
    assert!(old_data(true, false).found("old_data").is_none());
}

/// Calls to six peers, one of which replies late to a third of them.
fn peers(bad: Option<usize>) -> Trace {
    let mut trace = Trace::new();
    for peer in 0..6 {
        let fd = 20 + peer;
        trace.call(10, "socket", "family=2 socket_type=1", fd as i64, 5);
        let arguments = format!("fd={fd} sockaddr=10.0.0.{}:80", peer + 1);
        trace.call(10, "connect", &arguments, 0, 20);
    }
    for round in 0..120 {
        for peer in 0..6 {
            // Different durations, in an order that is not periodic in the peers.
            let usual = 900 + (round * 7919 + peer * 104_729) % 200;
            let is_late = bad == Some(peer) && round % 3 == 0;
            let us = if is_late { 25_000 } else { usual as u64 };
            trace.call(10, "recvfrom", &format!("fd={}", 20 + peer), 10, us);
        }
    }
    trace
}

fn pattern(trace: &Trace) -> whyslow_explain::Pattern {
    let query = Query {
        calls: vec!["recvfrom".into()],
        min: Some(5_000_000),
        ..Query::default()
    };
    trace.report(&query).patterns.remove(0)
}

#[test]
fn one_of_six_peers_that_is_late_is_told() {
    let found = pattern(&peers(Some(3)));
    assert_eq!(found.class, "one_device", "{found:#?}");
    assert!(found.summary.contains("10.0.0.4:80"), "{}", found.summary);
    let found = pattern(&peers(None));
    assert_ne!(found.class, "one_device", "{found:#?}");
}

/// Seconds of a device as reported by iostat: utilisation (%) and write latency (ms).
fn seconds_of_a_device(seconds: &[(u64, u64)]) -> Trace {
    let mut trace = Trace::new();
    for (second, (util, ms)) in seconds.iter().enumerate() {
        let _ = writeln!(
            trace.text,
            "{}.000000 [-] counters reported_by=iostat subject=vda interval=1000000000 \
             values=\"%util {} hundredths;r_await 100000 ns;w_await {} ns\"",
            second + 10,
            util * 100,
            ms * 1_000_000,
        );
    }
    trace
}

#[test]
fn a_device_that_is_busy_and_slow_by_its_counters_is_told_and_coincides() {
    let found = seconds_of_a_device(&[(10, 1), (99, 80), (100, 145), (20, 1)])
        .found("device_busy")
        .expect("the device");
    assert_eq!(found.culprit.name, "vda");
    assert_eq!(
        (found.begin_ns, found.end_ns),
        (10_000_000_000, 12_000_000_000)
    );
    assert!(
        found.summary.contains("2.00 s of 4.00 s"),
        "{}",
        found.summary
    );
    assert!(found.summary.contains("145 ms"), "{}", found.summary);
    assert!(found.summary.contains("overlapped"), "{}", found.summary);
    assert!(found.evidence[0].contains("grade C"), "{found:#?}");
}

#[test]
fn a_device_in_use_all_the_time_that_answers_at_once_is_not_told() {
    let trace = seconds_of_a_device(&[(100, 1), (100, 2), (50, 90)]);
    assert_eq!(trace.found("device_busy"), None);
    let report = trace.report(&Query::default());
    let reasons = &report.reasons;
    assert!(
        reasons
            .iter()
            .any(|reason| reason.summary.starts_with("slow operations unavailable")),
        "{reasons:?}"
    );
    assert_eq!(report.judged, Judged::CannotTell);
}

#[test]
fn slow_lookups_without_anything_else_are_told_with_what_hints_at_a_timeout() {
    let mut trace = Trace::new();
    for (at, since, host) in [
        ("20.0", "14.99", "db.example"),
        ("21.0", "20.99", "db.example"),
    ] {
        let _ = writeln!(
            trace.text,
            "{at} [-] (tid=5000001 pid=20 comm=wget) lookup since={since} function=unknown host={host}"
        );
    }
    let found = trace.found("slow_lookup").expect("the lookup");
    assert_eq!(found.culprit.name, "wget");
    assert_eq!(found.numbers[0], ("lookups".to_owned(), 1.0));
    assert!(found.summary.contains("5.01 s"), "{}", found.summary);
    assert!(
        found.summary.contains("which suggests timeouts"),
        "{}",
        found.summary
    );
    assert!(found.evidence[0].contains("grade C"), "{found:#?}");
}

#[test]
fn lookups_of_several_processes_of_one_name_are_no_single_one_s() {
    let mut trace = Trace::new();
    for (at, since, pid) in [("20.0", "14.99", 20), ("31.0", "21.0", 21)] {
        let _ = writeln!(
            trace.text,
            "{at} [-] (tid=500000{pid} pid={pid} comm=php-fpm) lookup since={since} function=unknown host=db.example"
        );
    }
    let found = trace.found("slow_lookup").expect("the lookups");
    assert_eq!(found.culprit.pid, None);
    assert!(
        found.summary.contains("php-fpm (2 processes)"),
        "{}",
        found.summary
    );
}
