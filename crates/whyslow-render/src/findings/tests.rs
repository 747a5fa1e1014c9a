use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;
use whyslow_base::time::Zone;
use whyslow_explain::{
    Actor, ActorKind, Advice, AdviceKind, Confidence, Difference, Finding, Grade, Hop, Missing,
    Observation, Page, Part, Report, Resource, ResourceState, Role, Target, TimelineRow, Versus,
};

use super::{markdown, page};
use crate::{Subject, TextStyle};

/// 2026-11-27 11:23:30.960 UTC
const T: i64 = 1_795_778_610_960_000_000;
const MS: i64 = 1_000_000;
/// Lines of a finding, at 80 columns.
const LINES_MAX: usize = 20;

fn style(width: usize) -> TextStyle {
    TextStyle {
        width: Some(width),
        ..TextStyle::plain()
    }
}

fn subject() -> Subject {
    Subject {
        name: "storm.wsl".into(),
        host: Some("vm".into()),
        ..Subject::default()
    }
}

fn actor(kind: ActorKind, name: &str, pid: i32) -> Actor {
    Actor {
        kind,
        name: name.into(),
        pid: Some(pid),
        tid: Some(pid),
        host: None,
    }
}

fn row(role: Role, label: &str, what: &str, (begin, end): (i64, i64)) -> TimelineRow {
    TimelineRow {
        role,
        label: label.into(),
        what: what.into(),
        begin_ns: T + begin * MS,
        end_ns: T + end * MS,
        cut: None,
        id: None,
    }
}

fn advice(kind: AdviceKind, text: &str, command: Option<&str>) -> Advice {
    Advice {
        kind,
        text: text.into(),
        command: command.map(str::to_owned),
    }
}

fn evidence(op: &str) -> Advice {
    let command = format!("whyslow explain storm.wsl {op}");
    advice(AdviceKind::Next, "all evidence", Some(&command))
}

/// A report with the resources of a machine and these findings.
fn report(findings: Vec<Finding>) -> Report {
    let resource = |topic, state, summary: &str, record_with| Resource {
        topic,
        state,
        summary: summary.into(),
        record_with,
    };
    let mut report = Report::default();
    (report.begin_ns, report.end_ns) = (T, T + 3900 * MS);
    report.recording = "storm.wsl".into();
    report.lost_events = Some(0);
    report.findings = findings;
    report.fine = vec![
        resource("cpu", ResourceState::Fine, "CPU 15 %", None),
        resource("disk", ResourceState::Fine, "vda p99 5.00 ms", None),
        resource("disk", ResourceState::High, "vdb p99 402 ms", None),
        resource("memory", ResourceState::NoneHappened, "memory", None),
        resource(
            "network",
            ResourceState::NotRecorded,
            "network",
            Some("--what +tcp"),
        ),
    ];
    report
}

/// A finding of a thread with what every finding has.
fn finding(page: Page, confidence: Confidence) -> Finding {
    let mut finding = Finding::default();
    finding.target = Target {
        kind: "operation".into(),
        id: Some("op:14812".into()),
        what: "openat(/mnt/ext4/sessions/sess_000560)".into(),
        actor: actor(ActorKind::Own, "sessiond", 16191),
        begin_ns: T + 2240 * MS,
        end_ns: T + 2645 * MS,
        cut: None,
    };
    finding.verdict = "openat by sessiond[16191] took 405 ms".into();
    finding.confidence = confidence;
    finding.parts = vec![Part {
        mechanism: "sync_storm".into(),
        root: "block_service".into(),
        culprit: actor(ActorKind::Process, "nightly-backup", 16192),
        dur_ns: 405 * MS,
        share: 1.0,
        grade: Grade::B,
        pieces: 1,
        ..Part::default()
    }];
    finding.chain = vec![Hop {
        actor: finding.target.actor.clone(),
        what: "waited".into(),
        mechanism: "block_service".into(),
        stack: vec!["do_get_write_access".into()],
        begin_ns: finding.target.begin_ns,
        end_ns: finding.target.end_ns,
        grade: Grade::B,
        evidence: "block:2266".into(),
        ..Hop::default()
    }];
    finding.culprit = (confidence > Confidence::None).then_some(0);
    finding.reproduce = "whyslow explain storm.wsl -w op:14812".into();
    finding.page = page;
    finding
}

fn storm() -> Finding {
    let page = Page {
        why: "nightly-backup (pid 16192) ran syncfs() for 2.43 s and kept the ext4 journal on \
              loop0 busy."
            .into(),
        who: "sessiond (pid 16191): 2 of 1,031 openat() took 403 and 405 ms (typically 59.0 us). \
              No other slow operation was attributed to it."
            .into(),
        sure: "high: seen the wait from start to end (405 ms, kernel stack in \
               do_get_write_access); inferred: block:2266 ended the wait of sessiond, block:2266 \
               belongs to syncfs() of nightly-backup; 2 of 2 slow operations lead to it."
            .into(),
        timeline: vec![
            row(
                Role::Culprit,
                "nightly-backup",
                "syncfs(/mnt/whyslow-lab/ext4/backup)",
                (1020, 3450),
            ),
            row(
                Role::Victim,
                "sessiond",
                "openat(/mnt/whyslow-lab/ext4/sessions/sess_000392)",
                (1440, 1843),
            ),
            row(
                Role::Victim,
                "sessiond",
                "openat(/mnt/whyslow-lab/ext4/sessions/sess_000560)",
                (2240, 2645),
            ),
        ],
        ended_ns: Some(T + 3450 * MS),
        advice: vec![
            advice(
                AdviceKind::Now,
                "stop nightly-backup (python3 run.py backup)",
                None,
            ),
            advice(
                AdviceKind::Fix,
                "limit or move the process that calls sync: io.max, another time of day",
                None,
            ),
            advice(
                AdviceKind::Fix,
                "keep fewer dirty pages: vm.dirty_background_bytes, vm.dirty_bytes",
                None,
            ),
            evidence("-w op:14812"),
            advice(
                AdviceKind::Next,
                "compare the device with its peers",
                Some("whyslow block outliers"),
            ),
        ],
        ..Page::default()
    };
    finding(page, Confidence::High)
}

fn without_culprit() -> Finding {
    let page = Page {
        why: "No single cause: 34 % run-queue waits due to find (pid 320), 21 % run-queue \
              waits due to apache2 (pid 242), 18 % CPU time."
            .into(),
        who: "dd (pid 327): 19 of 96 write() took up to 11.1 ms, 59.9 ms in total (typically \
              413 us)."
            .into(),
        sure: "no culprit: the largest share is 34 %; not recorded: stacks, locks.".into(),
        timeline: vec![row(
            Role::Victim,
            "dd",
            "write(/var/tmp/upload.bin)",
            (2000, 2011),
        )],
        ended_ns: Some(T + 2011 * MS),
        advice: vec![
            evidence("-w op:42827"),
            advice(
                AdviceKind::Next,
                "record stacks: where in the kernel the thread waited",
                Some("whyslow record --stacks 1ms"),
            ),
        ],
        ..Page::default()
    };
    finding(page, Confidence::None)
}

fn cannot_tell() -> Finding {
    let page = Page {
        why: "Cannot tell: 390 ms of 405 ms (96 %) has no recorded cause; not recorded: sched, \
              stacks, locks."
            .into(),
        who: "reporter (tid 32070, python3 pid 32028): openat() took 405 ms.".into(),
        sure: "no culprit: the largest share is 96 %.".into(),
        timeline: vec![TimelineRow {
            cut: Some("end"),
            ..row(Role::Victim, "reporter", "openat(/srv/a)", (3495, 3900))
        }],
        ended_ns: None,
        advice: vec![
            evidence("-w op:9"),
            advice(
                AdviceKind::Next,
                "record sched: which thread waited for which",
                Some("whyslow record --what +sched"),
            ),
        ],
        ..Page::default()
    };
    let mut finding = finding(page, Confidence::None);
    finding.missing = vec![Missing {
        events: "sched".into(),
        decides: "which thread waited for which".into(),
        record_with: "whyslow record --what +sched".into(),
    }];
    finding
}

fn of_profile() -> Finding {
    let page = Page {
        why: "request-handler-3 (tid 71, java pid 60) was in \
              kafka.log.LogSegment.append for 590 ms and most likely held the lock kafka.log.Log \
              that request-handler-5 waited for."
            .into(),
        who: "request-handler-5 (tid 73, java pid 60): wait for the monitor of kafka.log.Log in \
              kafka.log.Log.append took 598 ms; 7 of these, 2.10 s in total. No other slow \
              operation was attributed to it."
            .into(),
        sure: "medium: inferred: request-handler-5: its samples are in code that acquires the \
               lock, request-handler-3: for 590 ms its samples, and no others, are in code that \
               holds the lock; not recorded: kernel events."
            .into(),
        timeline: vec![
            row(
                Role::Culprit,
                "request-handler-3",
                "kafka.log.LogSegment.append",
                (1000, 1598),
            ),
            row(
                Role::Victim,
                "request-handler-5",
                "wait for the monitor of kafka.log.Log in kafka.log.Log.append",
                (1000, 1598),
            ),
        ],
        ended_ns: Some(T + 1598 * MS),
        advice: vec![
            advice(
                AdviceKind::Fix,
                "hold the lock for a shorter time: no I/O while holding it",
                None,
            ),
            evidence("-w lock:3"),
        ],
        ..Page::default()
    };
    finding(page, Confidence::Medium)
}

fn across_hosts() -> Finding {
    let page = Page {
        why: "postgres (pid 900 on db1) ran fsync() for 380 ms and flushed dirty pages to sdb; \
              that held up postgres (pid 812 on db1), which kept app waiting for a reply."
            .into(),
        who: "app (tid 7, python3 pid 5): request 17 GET /orders took 405 ms (typically 21.0 \
              ms); 12 of 300 requests were slow, up to 1.20 s."
            .into(),
        sure: "medium: seen block:77 ended the wait of postgres; inferred: block:77 belongs to \
               fsync() of postgres."
            .into(),
        timeline: vec![
            row(
                Role::Culprit,
                "postgres",
                "fsync(/var/lib/pg/wal)",
                (0, 380),
            ),
            row(
                Role::Between,
                "postgres",
                "pwrite64(/var/lib/pg/16384)",
                (10, 390),
            ),
            row(Role::Victim, "app", "request 17 GET /orders", (0, 405)),
        ],
        ended_ns: Some(T + 380 * MS),
        advice: vec![
            advice(AdviceKind::Now, "stop postgres (pid 900 on db1)", None),
            evidence("--request 17 --across db1.wsl"),
        ],
        ..Page::default()
    };
    finding(page, Confidence::Medium)
}

fn of_requests() -> Finding {
    let page = Page {
        why: "Cannot tell: 150 ms of it in phase wait, consistent with work or a wait of the \
              server; cause unavailable: no recording of the server."
            .into(),
        who: "client: request 9 GET /popular took 158 ms (typically 20.0 ms); 12 of 300 requests \
              were slow, up to 2.10 s."
            .into(),
        sure: "no culprit: the largest share is 95 %.".into(),
        timeline: vec![row(
            Role::Victim,
            "client",
            "request 9 GET /popular",
            (100, 258),
        )],
        ended_ns: Some(T + 258 * MS),
        advice: vec![evidence("--request 9")],
        ..Page::default()
    };
    finding(page, Confidence::None)
}

fn with_comparison() -> Finding {
    let mut finding = storm();
    finding.versus = Some(Versus {
        recording: "yesterday.wsl".into(),
        begin_ns: T - 1000 * MS,
        end_ns: T - 500 * MS,
        per: "call".into(),
        here: 24,
        there: 24,
        mean_here_ns: 404 * MS,
        mean_there_ns: Some(59_000),
        differences: (0..6)
            .map(|_| Difference {
                mechanism: "sync_storm".into(),
                culprit: actor(ActorKind::Process, "nightly-backup", 16192),
                here_ns: 403 * MS,
                there_ns: 0,
            })
            .collect(),
    });
    finding
}

fn all() -> Vec<(&'static str, Finding)> {
    vec![
        ("culprit_with_two_victims", storm()),
        ("no_culprit", without_culprit()),
        ("cannot_tell", cannot_tell()),
        ("profile", of_profile()),
        ("across_hosts", across_hosts()),
        ("requests", of_requests()),
    ]
}

fn shown(finding: Finding, style: &TextStyle) -> String {
    page::text(&report(vec![finding]), &subject(), style)
}

/// Lines of the finding, without the head and the resources.
fn lines_of(text: &str) -> Vec<&str> {
    let blocks: Vec<&str> = text.split("\n\n").collect();
    blocks[1].lines().collect()
}

#[test]
fn pages_at_80_columns() {
    for (name, finding) in all() {
        assert_snapshot!(format!("page_{name}"), shown(finding, &style(80)));
    }
}

#[test]
fn a_finding_has_at_most_20_lines() {
    let mut long = storm();
    long.page.why = "word ".repeat(400);
    long.page.who.clone_from(&long.page.why);
    long.page.sure.clone_from(&long.page.why);
    let fix = advice(AdviceKind::Fix, &long.page.why, None);
    long.page.advice.insert(0, fix);
    let last = long.page.timeline[2].clone();
    long.page.timeline.push(last);
    let mut findings = all();
    findings.push(("long", long));
    findings.push(("comparison", with_comparison()));
    for (name, finding) in findings {
        let text = shown(finding, &style(80));
        let count = lines_of(&text).len();
        assert!(count <= LINES_MAX, "{name}: {count} lines\n{text}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 60, 80, 120] {
        for ascii in [false, true] {
            let style = TextStyle {
                ascii,
                ..style(width)
            };
            for (name, finding) in all() {
                let text = shown(finding, &style);
                for line in text.lines() {
                    assert!(line.width() <= width, "{name}, {width}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn the_page_is_ascii_where_that_is_wanted() {
    let style = TextStyle {
        ascii: true,
        ..style(80)
    };
    let text = shown(storm(), &style);
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!("page_ascii", text);
    for (name, finding) in all() {
        assert!(shown(finding, &style).is_ascii(), "{name}");
    }
}

#[test]
fn the_culprit_has_the_only_colour() {
    let colored = TextStyle {
        color: true,
        ..style(80)
    };
    let text = shown(storm(), &colored);
    let red = "\u{1b}[1m\u{1b}[31m";
    // Its name in the sentence and in the drawing, and its bar.
    assert_eq!(text.matches(red).count(), 3, "{text}");
    let plain = shown(storm(), &style(80));
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn evidence_is_shown_on_request_only() {
    let ids = ["sync_storm", "block_service", "verdict: "];
    let short = shown(storm(), &style(80));
    for id in ids {
        assert!(!short.contains(id), "{id}: {short}");
    }
    let wide = TextStyle {
        details: true,
        width: None,
        ..style(80)
    };
    let mut single = report(vec![storm()]);
    single.is_single = true;
    let single = page::text(&single, &subject(), &style(80));
    for text in [shown(storm(), &wide), single] {
        for id in ids {
            assert!(text.contains(id), "{id}: {text}");
        }
        assert!(text.contains("[B: block:2266]"), "{text}");
    }
}

#[test]
fn hostile_names_are_escaped_in_sentences_and_bars() {
    let hostile = "evil\u{1b}[31m\u{202e}\nx";
    let mut finding = storm();
    finding.page.why = format!("{hostile} (pid 1) ran sync() for 1.00 s.");
    finding.page.timeline[0].label = hostile.into();
    finding.page.timeline[1].what = hostile.into();
    let mut report = report(vec![finding]);
    report.observations.push(Observation {
        kind: "log_flood".into(),
        culprit: actor(ActorKind::Process, hostile, 1),
        object: None,
        begin_ns: T,
        end_ns: T,
        summary: hostile.into(),
        numbers: Vec::new(),
        evidence: Vec::new(),
        shown_by: Some(format!("whyslow io top {hostile}")),
        suggestions: vec![hostile.into()],
    });
    let subject = Subject {
        name: hostile.into(),
        host: Some(hostile.into()),
        ..Subject::default()
    };
    for text in [
        page::text(&report, &subject, &style(80)),
        markdown::text(&report, &subject, &style(80)),
    ] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.contains("evil\\x1b[31m"), "{text}");
    }
}

#[test]
fn markdown_has_the_same_sentences() {
    let style = TextStyle {
        zone: Zone::parse("+01:00").expect("an offset"),
        ..TextStyle::plain()
    };
    let text = markdown::text(&report(vec![storm()]), &subject(), &style);
    let finding = storm();
    for sentence in [finding.page.why, finding.page.who, finding.page.sure] {
        assert!(text.contains(&sentence), "{text}");
    }
    assert_snapshot!("page_markdown", text);
}
