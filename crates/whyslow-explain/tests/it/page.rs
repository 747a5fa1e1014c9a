//! The sentences and the drawing of findings, on synthetic traces and on all cases of the rules.
//!
//! `sentences.txt` has the sentences of every case; `WHYSLOW_BLESS=1` rewrites it.

use std::fmt::Write as _;
use std::path::PathBuf;

use whyslow_explain::{
    AdviceKind, Confidence, Finding, Page, Query, Report, ResourceState, Role, TIMELINE_ROWS_MAX,
    explain,
};
use whyslow_model::mechanism::MECHANISMS;
use whyslow_test_recordings::Recorded;

use super::rules;

const MS: i64 = 1_000_000;

/// Events in any order.
#[derive(Default)]
struct Trace(Vec<(i64, String)>);

impl Trace {
    fn at(&mut self, us: i64, text: &str) {
        self.0.push((us, text.to_owned()));
    }

    /// A call that is served at once.
    fn short_call(&mut self, us: i64) {
        self.at(
            us,
            "[0] (tid=10 pid=10 comm=sessiond) syscall_enter name=openat path=\"/s/short\"",
        );
        self.at(us + 50, "[0] (tid=10) syscall_exit name=openat ret=3");
    }

    /// A call that waits for a request of thread 20.
    fn slow_call(&mut self, (us, dur): (i64, i64), sector: i64, path: &str) {
        let entered =
            format!("[0] (tid=10 pid=10 comm=sessiond) syscall_enter name=openat path=\"{path}\"");
        self.at(us, &entered);
        let request = format!("dev=8:0 sector={sector} sectors=8 rwbs=W");
        self.at(us + 10, &format!("[1] (tid=20) block_getrq {request}"));
        self.at(us + 20, &format!("[1] (tid=20) block_rq_issue {request}"));
        let since = (us + 100) as f64 / 1e6;
        self.at(
            us + 100,
            "[0] (tid=10) sched_switch prev=10 prev_state=D next=0",
        );
        let done = us + dur - 300;
        self.at(done, "[0] irq_enter kind=hard nr=19 name=virtio");
        let completed = format!("[0] block_rq_complete {request} error=0");
        self.at(done, &completed);
        self.at(done, "[0] sched_waking tid=10");
        self.at(done + 100, "[0] irq_exit kind=hard nr=19 ret=1");
        self.at(done + 200, "[0] sched_switch prev=0 prev_state=R next=10");
        self.at(
            done + 210,
            &format!(
                "[0] (tid=10) stack kind=back since={since:.6} state=D \
                 kernel=do_get_write_access;jbd2_journal_get_write_access;__ext4_new_inode"
            ),
        );
        self.at(us + dur, "[0] (tid=10) syscall_exit name=openat ret=3");
    }

    fn text(mut self) -> String {
        self.0.sort_by_key(|(us, _)| *us);
        let lines = self.0.iter();
        lines.fold(String::new(), |mut text, (us, line)| {
            let _ = writeln!(text, "{}.{:06} {line}", us / 1_000_000, us % 1_000_000);
            text
        })
    }
}

/// A syncfs of 2.5 s, in which two opens of another process take 300 and 400 ms.
fn storm() -> Report {
    let mut trace = Trace::default();
    trace.at(
        1_000_000,
        "[0] sched_switch prev=0 next=10 prev_state=R next_comm=sessiond",
    );
    for number in 0..60 {
        trace.short_call(1_000_100 + number * 1_000);
    }
    trace.at(
        1_100_000,
        "[1] sched_switch prev=0 next=20 prev_state=R next_comm=nightly-backup",
    );
    trace.at(
        1_100_100,
        "[1] process tid=20 pid=20 command_line=\"/usr/bin/python3 backup.py\"",
    );
    trace.at(
        1_100_200,
        "[1] (tid=20 pid=20 comm=nightly-backup) syscall_enter name=syncfs fd=4",
    );
    trace.slow_call((1_500_000, 300_000), 100, "/s/sess_1");
    trace.slow_call((2_500_000, 400_000), 200, "/s/sess_2");
    trace.at(3_600_200, "[1] (tid=20) syscall_exit name=syncfs ret=0");
    for number in 0..5 {
        trace.short_call(3_700_000 + number * 1_000);
    }
    let made = Recorded::of_text(&trace.text());
    let query = Query {
        recording: "storm.wsl".into(),
        ..Query::default()
    };
    explain(&made.recording, &query, None).expect("an answer")
}

fn page(report: &Report) -> &Page {
    &report.findings.first().expect("a finding").page
}

#[test]
fn the_culprit_comes_first_and_its_victims_are_counted() {
    let report = storm();
    let page = page(&report);
    assert_eq!(
        page.why,
        "nightly-backup (pid 20) ran syncfs() for 2.50 s and kept the ext4 journal on 8:0 busy."
    );
    assert_eq!(
        page.who,
        "sessiond (pid 10): 2 of 67 openat() took 300 and 400 ms (typically 49.5 us). \
         No other slow operation was attributed to it."
    );
    let sure = &page.sure;
    assert!(
        sure.starts_with("high: the wait was recorded from start to end"),
        "{sure}"
    );
    assert!(
        sure.contains("(kernel stack in do_get_write_access)"),
        "{sure}"
    );
    assert!(
        sure.contains("all 2 slow operations have this culprit"),
        "{sure}"
    );
    let victim = &page.victims[0];
    assert_eq!((victim.count, victim.of), (2, Some(67)));
    assert_eq!(victim.dur_ns_max, 400 * MS);
}

#[test]
fn the_drawing_has_the_culprit_and_both_victims() {
    let report = storm();
    let page = page(&report);
    let rows: Vec<_> = page
        .timeline
        .iter()
        .map(|row| (row.role, row.label.as_str(), row.what.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            (Role::Culprit, "nightly-backup", "syncfs()"),
            (Role::Victim, "sessiond", "openat(/s/sess_1)"),
            (Role::Victim, "sessiond", "openat(/s/sess_2)"),
        ]
    );
    let lasted: Vec<i64> = page
        .timeline
        .iter()
        .map(|row| (row.end_ns - row.begin_ns) / MS)
        .collect();
    assert_eq!(lasted, [2500, 300, 400]);
    assert_eq!(page.ended_ns, Some(3_600_200_000));
}

#[test]
fn advice_is_sorted_by_when_it_applies() {
    let report = storm();
    let page = page(&report);
    let of = |kind| {
        let found = page.advice.iter().filter(move |one| one.kind == kind);
        found.map(|one| one.text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(AdviceKind::Now),
        ["stop nightly-backup (python3 backup.py)"]
    );
    assert!(!of(AdviceKind::Fix).is_empty());
    let first = page.advice.iter().find(|one| one.kind == AdviceKind::Next);
    let command = first.and_then(|one| one.command.as_deref());
    let id = report.findings[0].target.id.as_deref().expect("an id");
    assert_eq!(
        command,
        Some(format!("whyslow explain storm.wsl -w {id}").as_str())
    );
}

#[test]
fn a_resource_is_fine_idle_or_not_recorded() {
    let report = storm();
    let of = |topic| {
        let found = report.fine.iter().find(|one| one.topic == topic);
        found.map(|one| (one.state, one.summary.as_str()))
    };
    let (state, cpu) = of("cpu").expect("CPUs");
    assert_eq!(state, ResourceState::Fine, "{cpu}");
    // The only disk is the one that the finding is about.
    assert_eq!(of("disk"), None);
    assert_eq!(of("memory"), Some((ResourceState::NotRecorded, "memory")));
    assert_eq!(of("network"), Some((ResourceState::NotRecorded, "network")));
    assert_eq!(report.lost_events, Some(0));
    let idle = Recorded::of_text(
        "meta topics=\"sched,block,mem,tcp\"\n\
         1.0 [0] sched_switch prev=0 next=10 prev_state=R next_comm=a\n\
         2.0 [0] sched_switch prev=10 prev_state=S next=0\n",
    );
    let report = explain(&idle.recording, &Query::default(), None).expect("an answer");
    let states: Vec<_> = report
        .fine
        .iter()
        .map(|one| (one.topic, one.state))
        .collect();
    assert_eq!(
        states[1..],
        [
            ("disk", ResourceState::NoneHappened),
            ("memory", ResourceState::Fine),
            ("network", ResourceState::NoneHappened),
        ]
    );
}

#[test]
fn lost_events_are_counted() {
    let made = Recorded::of_text(
        "1.0 [0] sched_switch prev=0 next=10 prev_state=R next_comm=a\n\
         1.5 [0] lost kind=events until=1.6 count=7\n\
         2.0 [0] sched_switch prev=10 prev_state=S next=0\n",
    );
    let report = explain(&made.recording, &Query::default(), None).expect("an answer");
    assert_eq!(report.lost_events, Some(7));
}

/// What holds for the page of every finding.
pub(super) fn check(finding: &Finding, case: &str) {
    let page = &finding.page;
    for sentence in [&page.why, &page.who, &page.sure] {
        assert!(sentence.ends_with('.'), "{case}: {sentence}");
        assert!(
            !sentence.contains("  ") && !sentence.contains(".."),
            "{case}: {sentence}"
        );
        assert!(!sentence.contains(['{', '}']), "{case}: {sentence}");
        let is_id = |id: &str| id.contains('_') && sentence.contains(id);
        let id = MECHANISMS.iter().find(|(id, _)| is_id(id));
        assert!(id.is_none(), "{case}: {sentence}");
    }
    assert!(
        !page.timeline.is_empty() && page.timeline.len() <= TIMELINE_ROWS_MAX,
        "{case}"
    );
    assert!(
        page.timeline.iter().any(|row| row.role == Role::Victim),
        "{case}"
    );
    for row in &page.timeline {
        assert!(row.begin_ns <= row.end_ns, "{case}: {row:?}");
    }
    assert!(page.advice.is_sorted_by_key(|one| one.kind), "{case}");
    assert!(
        page.advice.iter().any(|one| one.command.is_some()),
        "{case}"
    );
    let is_named = finding.confidence > Confidence::None;
    let claims = !page.why.starts_with("No single cause")
        && !page.why.starts_with("Cannot tell")
        && !page.why.starts_with("Not slower");
    assert_eq!(is_named, claims, "{case}: {}", page.why);
}

#[test]
fn sentences_of_all_cases_are_as_listed() {
    let mut found = String::new();
    let findings = rules::findings();
    for (case, finding) in &findings {
        let page = &finding.page;
        let _ = writeln!(
            found,
            "## {case}\nWHY  {}\nWHO  {}\nSURE {}",
            page.why, page.who, page.sure
        );
        for one in page.advice.iter().filter(|one| one.kind == AdviceKind::Now) {
            let _ = writeln!(found, "NOW  {}", one.text);
        }
        found.push('\n');
    }
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/sentences.txt");
    if std::env::var_os("WHYSLOW_BLESS").is_some() {
        std::fs::write(&file, &found).expect("room");
    }
    for (case, finding) in &findings {
        check(finding, case);
    }
    let listed = std::fs::read_to_string(&file).expect("the list");
    assert!(
        listed == found,
        "WHYSLOW_BLESS=1 rewrites {}",
        file.display()
    );
}
