//! Each rule on traces small enough to read: one in which it applies, one in which it almost does,
//! one in which events are missing. `cases/*.txt` have these one after another:
//!
//! ```text
//! ## what the trace shows
//! explain TID BEGIN..END                     in seconds
//! 200.000 ms  block_service  itself  8:0  A  what is expected, the longest first
//! ---
//! …                                          the trace, in the text format
//! ```
//!
//! The line of a part has its duration, its mechanism (and its root, if that differs), the culprit,
//! the object, and the grade. Parts below one per cent are left out. `WHYSLOW_BLESS=1` rewrites the
//! files with the actual results.

mod degraded;
mod random;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use whyslow_explain::{ActorKind, Finding, Part, Query, explain};
use whyslow_model::Window;
use whyslow_test_recordings::Recorded;

const LEAST: f64 = 0.01;

struct Case<'t> {
    title: &'t str,
    command: &'t str,
    expected: Vec<&'t str>,
    trace: &'t str,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let sections = text.split("## ").skip(1);
    sections
        .map(|section| {
            let (head, trace) = section.split_once("---\n").expect("a trace");
            let mut lines = head.lines();
            let title = lines.next().expect("a title");
            let command = lines.next().expect("a command");
            let expected = lines.map(str::trim).filter(|line| !line.is_empty());
            Case {
                title,
                command,
                expected: expected.collect(),
                trace,
            }
        })
        .collect()
}

fn ns(seconds: &str) -> i64 {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    let decimals = format!("{decimals:0<9}");
    whole.parse::<i64>().expect("seconds") * 1_000_000_000 + decimals.parse::<i64>().expect("ns")
}

fn line_of(part: &Part) -> String {
    let culprit = match part.culprit.kind {
        ActorKind::Own => "itself".to_owned(),
        ActorKind::Unknown => "unknown".to_owned(),
        _ => match part.culprit.tid {
            Some(tid) => format!("{}[{tid}]", part.culprit.name),
            None => part.culprit.name.clone(),
        },
    };
    let mut line = format!("{:.3} ms  {}", part.dur_ns as f64 / 1e6, part.mechanism);
    if part.root != part.mechanism {
        let _ = write!(line, " ({})", part.root);
    }
    let _ = write!(line, "  {culprit}");
    if let Some(object) = &part.object {
        let _ = write!(line, "  {}", object.name);
    }
    let _ = write!(line, "  {:?}", part.grade);
    line
}

fn finding_of(case: &Case<'_>) -> Finding {
    let made = Recorded::of_text(case.trace);
    let words: Vec<&str> = case.command.split_whitespace().collect();
    let [_, tid, window] = words.as_slice() else {
        panic!("{}: explain TID BEGIN..END", case.command);
    };
    let (begin, end) = window.split_once("..").expect("a window");
    let query = Query {
        window: Some(Window::new(ns(begin), ns(end))),
        tids: vec![tid.parse().expect("a number")],
        ..Query::default()
    };
    let report = explain(&made.recording, &query, None).expect("an answer");
    report.findings.into_iter().next().expect("a finding")
}

fn answer(case: &Case<'_>) -> Vec<String> {
    let finding = finding_of(case);
    let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
    assert_eq!(
        sum,
        finding.target.end_ns - finding.target.begin_ns,
        "{}: every instant counts once",
        case.title
    );
    let shown = finding.parts.iter().filter(|part| part.share >= LEAST);
    shown.map(line_of).collect()
}

fn check(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).expect("a case");
    let (mut blessed, mut wrong) = (String::new(), String::new());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    blessed.push_str(text.split("## ").next().unwrap_or(""));
    for case in cases(&text) {
        let answer = answer(&case);
        let _ = write!(
            blessed,
            "## {}\n{}\n{}\n---\n{}",
            case.title,
            case.command,
            answer.join("\n"),
            case.trace
        );
        if answer != case.expected {
            let _ = write!(
                wrong,
                "\n{name}: {}\n  expected {:#?}\n  is {:#?}\n",
                case.title, case.expected, answer
            );
        }
    }
    if std::env::var_os("WHYSLOW_BLESS").is_some() {
        std::fs::write(file, blessed).expect("room");
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// The findings of all cases, with their titles.
pub(super) fn findings() -> Vec<(String, Finding)> {
    let mut found = Vec::new();
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("a case");
        let of_case = |case: &Case<'_>| (case.title.to_owned(), finding_of(case));
        found.extend(cases(&text).iter().map(of_case));
    }
    found
}

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/rules/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[test]
fn each_rule_holds_where_it_should_and_only_there() {
    let files = files();
    assert!(!files.is_empty());
    let wrong: String = files.iter().filter_map(|file| check(file).err()).collect();
    assert!(wrong.is_empty(), "{wrong}");
}
