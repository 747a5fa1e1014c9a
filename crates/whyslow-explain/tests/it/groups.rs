//! Findings of groups of slow calls: the cause of most of their time is the headline, however many
//! of them are different, and calls of several processes are not those of one.

use std::fmt::Write as _;

use whyslow_explain::{ActorKind, Finding, Query, Report, explain, victims};
use whyslow_model::answer::Value;
use whyslow_test_recordings::Recorded;

/// Events by time in µs.
#[derive(Default)]
struct Trace(Vec<(u64, String)>);

impl Trace {
    fn at(&mut self, us: u64, event: &str) {
        self.0.push((us, event.to_owned()));
    }

    /// A call of `comm` (pid and tid `tid`) on CPU 0 that takes 20 µs.
    fn short(&mut self, us: u64, (tid, comm): (u32, &str), call: &str) {
        let thread = format!("(tid={tid} pid={tid} comm={comm})");
        self.at(us, &format!("[0] {thread} syscall_enter name={call}"));
        self.at(
            us + 20,
            &format!("[0] {thread} syscall_exit name={call} ret=8"),
        );
    }

    /// A call that waits until thread 20, which runs, wakes it.
    fn waiting(&mut self, (us, dur): (u64, u64), (tid, comm): (u32, &str), call: &str) {
        let thread = format!("(tid={tid} pid={tid} comm={comm})");
        let end = us + dur;
        self.at(us, &format!("[0] {thread} syscall_enter name={call}"));
        self.at(
            us + 10,
            &format!("[0] {thread} sched_switch prev={tid} prev_state=D next=0"),
        );
        self.at(end - 20, &format!("[1] (tid=20) sched_waking tid={tid}"));
        self.at(
            end - 10,
            &format!("[0] sched_switch prev=0 prev_state=R next={tid} next_comm={comm}"),
        );
        self.at(end, &format!("[0] {thread} syscall_exit name={call} ret=8"));
    }

    fn recorded(mut self) -> Recorded {
        self.0.sort_by_key(|(us, _)| *us);
        let text = self.0.iter().fold(String::new(), |mut text, (us, line)| {
            let _ = writeln!(text, "{}.{:06} {line}", us / 1_000_000, us % 1_000_000);
            text
        });
        Recorded::of_text(&text)
    }

    fn report(self, query: &Query) -> Report {
        explain(&self.recorded().recording, query, None).expect("an answer")
    }
}

fn named(finding: &Finding) -> (ActorKind, &str) {
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    (part.culprit.kind, part.culprit.name.as_str())
}

/// Writes of one process, on CPU 0, while thread 20 runs on CPU 1.
fn writes(waits: u64, own_ms: u64) -> Report {
    let mut trace = Trace::default();
    let writer = (10, "writer");
    trace.at(
        1_000_000,
        "[0] sched_switch prev=0 next=10 prev_state=R next_comm=writer",
    );
    trace.at(
        1_000_000,
        "[1] sched_switch prev=0 next=20 prev_state=R next_comm=holder",
    );
    trace.at(1_000_010, "[1] state_process tid=20 pid=20 comm=holder");
    for number in 0..60 {
        trace.short(1_000_100 + number * 1_000, writer, "pwrite64");
    }
    for number in 0..waits {
        trace.waiting((1_100_000 + number * 200_000, 150_000), writer, "pwrite64");
    }
    let own = 4_000_000;
    trace.at(
        own,
        "[0] (tid=10 pid=10 comm=writer) syscall_enter name=pwrite64",
    );
    trace.at(
        own + own_ms * 1_000,
        "[0] (tid=10 pid=10 comm=writer) syscall_exit name=pwrite64 ret=8",
    );
    trace.at(
        6_000_000,
        "[1] (tid=20 pid=20 comm=holder) sched_switch prev=20 prev_state=S next=0",
    );
    trace.report(&Query::default())
}

#[test]
fn the_cause_of_most_of_the_time_is_the_headline_and_not_that_of_the_longest_call() {
    let report = writes(6, 300);
    let finding = &report.findings[0];
    assert_eq!(named(finding), (ActorKind::Process, "holder"));
    assert!(
        finding
            .page
            .why
            .ends_with("That is the cause of 6 of 7 slow operations (900 ms of 1.20 s)."),
        "{}",
        finding.page.why
    );
    let group = finding.group.as_ref().expect("a group");
    assert_eq!((group.count, group.walked), (7, 7));
    assert_eq!(group.dur_ns_max, 300_000_000);
}

#[test]
fn near_miss_one_long_call_takes_more_time_than_the_others_together() {
    let report = writes(1, 300);
    let of_writer = report
        .findings
        .iter()
        .find(|finding| finding.target.what.starts_with("pwrite64"))
        .expect("a finding");
    assert_eq!(named(of_writer).0, ActorKind::Own);
}

#[test]
fn calls_of_four_processes_are_not_those_of_one() {
    let mut trace = Trace::default();
    for number in 0..4_u64 {
        let tid = 100 + number as u32;
        let begin = 1_000_000 + number * 500_000;
        trace.at(
            begin - 10,
            &format!("[0] sched_switch prev=0 prev_state=R next={tid} next_comm=sync"),
        );
        trace.at(
            begin,
            &format!("[0] (tid={tid} pid={tid} comm=sync) syscall_enter name=sync"),
        );
        trace.at(
            begin + 300_000,
            &format!("[0] (tid={tid} pid={tid} comm=sync) syscall_exit name=sync ret=0"),
        );
        trace.at(
            begin + 300_010,
            &format!(
                "[0] (tid={tid} pid={tid} comm=sync) sched_switch prev={tid} prev_state=X next=0"
            ),
        );
    }
    let report = trace.report(&Query::default());
    let culprit = &report.findings[0].page.who;
    assert!(
        culprit.contains(" and 3 other processes: 4 sync()"),
        "{culprit}"
    );
}

/// Reads of two disks by one thread, one of them slower; device and duration in µs of each.
fn disks(slower_us: u64) -> Report {
    let mut trace = Trace::default();
    for number in 0..80_u64 {
        let begin = 1_000_000 + number * 100_000;
        for (disk, dur) in [(0, 3_000 + number * 10), (16, slower_us + number * 10)] {
            let range = format!("dev=8:{disk} sector={} sectors=8 rwbs=R", number * 8);
            let begin = begin + disk * 3_000;
            trace.at(
                begin,
                &format!("[0] (tid=10 pid=10 comm=reader) block_getrq {range}"),
            );
            trace.at(begin + 5, &format!("[0] (tid=10) block_rq_issue {range}"));
            trace.at(
                begin + dur,
                &format!("[0] (tid=10) block_rq_complete {range} error=0"),
            );
        }
    }
    let query = Query {
        devices: vec!["8:0".into(), "8:16".into()],
        ..Query::default()
    };
    trace.report(&query)
}

#[test]
fn two_disks_are_too_few_for_a_test_but_their_difference_is_reported() {
    let report = disks(36_000);
    let differs: Vec<_> = report
        .observations
        .iter()
        .filter(|observation| observation.kind == "device_differs")
        .collect();
    assert_eq!(differs.len(), 1, "{:#?}", report.observations);
    assert_eq!(differs[0].culprit.name, "8:16");
    let summary = &differs[0].summary;
    assert!(summary.contains("low confidence"), "{summary}");
    assert!(summary.contains("against 3."), "{summary}");
}

#[test]
fn near_miss_two_like_disks_are_neither_different_nor_cleared() {
    let report = disks(3_200);
    assert_eq!(report.observations.len(), 2);
    for observation in &report.observations {
        assert_eq!(observation.kind, "device");
        assert!(
            !observation.summary.contains("does not stand out"),
            "{}",
            observation.summary
        );
        assert!(observation.summary.contains("cannot compare"));
    }
}

/// Calls of `io_getevents` of which one takes 400 ms and ends with a request, which is submitted
/// before it by the same thread, or 390 ms later by another.
fn completions(is_late: bool) -> Report {
    let mut trace = Trace::default();
    let reader = (10, "reader");
    trace.at(
        1_000_000,
        "[0] sched_switch prev=0 next=10 prev_state=R next_comm=reader",
    );
    trace.at(1_000_000, "[1] state_process tid=20 pid=20 comm=submitter");
    for number in 0..60 {
        trace.short(1_000_100 + number * 1_000, reader, "io_getevents");
    }
    let range = "dev=8:0 sector=100 sectors=8 rwbs=R";
    let (submit, by) = if is_late {
        (1_490_000, "[1] (tid=20 pid=20 comm=submitter)")
    } else {
        (1_100_000, "[0] (tid=10 pid=10 comm=reader)")
    };
    trace.at(submit, &format!("{by} block_getrq {range}"));
    trace.at(submit + 5, &format!("{by} block_rq_issue {range}"));
    let thread = "[0] (tid=10 pid=10 comm=reader)";
    for (us, event) in [
        (
            1_100_010,
            format!("{thread} syscall_enter name=io_getevents"),
        ),
        (
            1_100_020,
            format!("{thread} sched_switch prev=10 prev_state=S next=0"),
        ),
        (
            1_500_000,
            "[0] irq_enter kind=hard nr=19 name=virtio".to_owned(),
        ),
        (1_500_000, format!("[0] block_rq_complete {range} error=0")),
        (1_500_000, "[0] sched_waking tid=10".to_owned()),
        (1_500_010, "[0] irq_exit kind=hard nr=19 ret=1".to_owned()),
        (
            1_500_020,
            "[0] sched_switch prev=0 prev_state=R next=10 next_comm=reader".to_owned(),
        ),
        (
            1_500_030,
            format!("{thread} syscall_exit name=io_getevents ret=1"),
        ),
        (
            1_500_040,
            format!("{thread} sched_switch prev=10 prev_state=S next=0"),
        ),
    ] {
        trace.at(us, &event);
    }
    trace.report(&Query::default())
}

#[test]
fn a_wait_for_the_completion_of_a_request_is_slow_with_its_request() {
    let report = completions(false);
    let finding = report.findings.first().expect("a finding");
    assert!(finding.target.what.starts_with("io_getevents"));
    assert_eq!(finding.parts[0].root, "block_service");
}

#[test]
fn near_miss_a_wait_for_a_request_that_is_not_submitted_yet_is_idle() {
    let report = completions(true);
    let is_wait = |finding: &&Finding| finding.target.what.starts_with("io_getevents");
    assert_eq!(report.findings.iter().filter(is_wait).count(), 0);
}

#[test]
fn waits_are_titled_by_what_they_were_for() {
    let mut trace = Trace::default();
    trace.at(
        1_000_000,
        "[0] sched_switch prev=0 next=10 prev_state=R next_comm=worker",
    );
    // Page faults: outside of calls.
    for number in 0..10_u64 {
        let begin = 1_010_000 + number * 40_000;
        let range = format!("dev=8:0 sector={} sectors=8 rwbs=R", 100 + number * 8);
        for (us, event) in [
            (
                begin,
                format!("[0] (tid=10 pid=10 comm=worker) block_getrq {range}"),
            ),
            (begin + 5, format!("[0] (tid=10) block_rq_issue {range}")),
            (
                begin + 10,
                "[0] (tid=10) sched_switch prev=10 prev_state=D next=0".to_owned(),
            ),
            (
                begin + 30_000,
                "[0] irq_enter kind=hard nr=19 name=virtio".to_owned(),
            ),
            (
                begin + 30_000,
                format!("[0] block_rq_complete {range} error=0"),
            ),
            (begin + 30_000, "[0] sched_waking tid=10".to_owned()),
            (
                begin + 30_010,
                "[0] irq_exit kind=hard nr=19 ret=1".to_owned(),
            ),
            (
                begin + 30_020,
                "[0] sched_switch prev=0 prev_state=R next=10 next_comm=worker".to_owned(),
            ),
        ] {
            trace.at(us, &event);
        }
    }
    trace.at(1_500_000, "[0] (tid=10) syscall_enter name=getpid");
    let report = trace.report(&Query::default());
    let finding = report.findings.first().expect("a finding");
    let what = &finding.target.what;
    assert!(what.contains("10 waits for disks"), "{what}");
    assert!(
        finding.verdict.contains("10 waits for disks"),
        "{}",
        finding.verdict
    );
}

#[test]
fn the_victims_of_a_call_are_all_calls_that_waited_for_it() {
    let mut trace = Trace::default();
    trace.at(
        1_000_000,
        "[1] sched_switch prev=0 next=20 prev_state=R next_comm=holder",
    );
    let holder = "[1] (tid=20 pid=20 comm=holder)";
    trace.at(1_000_010, &format!("{holder} syscall_enter name=ftruncate"));
    trace.waiting((1_100_000, 150_000), (10, "writer"), "pwrite64");
    trace.waiting((1_300_000, 50_000), (11, "reader"), "pread64");
    trace.at(
        1_500_000,
        &format!("{holder} syscall_exit name=ftruncate ret=0"),
    );
    // After the call, and by another thread.
    trace.waiting((1_600_000, 80_000), (12, "later"), "pread64");
    trace.at(
        2_000_000,
        &format!("{holder} sched_switch prev=20 prev_state=S next=0"),
    );
    let recorded = trace.recorded();
    let report = explain(&recorded.recording, &Query::default(), None).expect("an answer");
    let parts = report.findings.iter().flat_map(|finding| &finding.parts);
    let mut activities = parts.filter_map(|part| part.activity.as_ref());
    let of = activities.find(|activity| activity.call == "ftruncate");
    let id = of
        .and_then(|activity| activity.id.as_deref())
        .expect("an id");
    let id = id
        .strip_prefix("op:")
        .expect("a call")
        .parse()
        .expect("a number");
    let answer = victims(&recorded.recording, id).expect("an answer");
    let table = &answer.tables[0];
    let names: Vec<&Value> = table.rows.iter().map(|row| &row[1]).collect();
    assert_eq!(
        names,
        [&Value::Text("writer".into()), &Value::Text("reader".into())]
    );
    assert!(
        table
            .title
            .starts_with("2 calls of 2 processes waited for ftruncate by holder[20], "),
        "{}",
        table.title
    );
    let waited = table.rows.iter().map(|row| match row[0] {
        Value::Int(waited) => waited,
        _ => 0,
    });
    let total = table.facts.iter().find(|(name, _, _)| name == "total_ns");
    assert_eq!(total.expect("a fact").2, Value::Int(waited.sum()));
}
