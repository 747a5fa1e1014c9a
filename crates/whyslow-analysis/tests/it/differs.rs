//! `differs` on small tables with manually computed results.

use std::fmt::Write as _;

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::{Answer, Value};

use crate::it::by_hand::recording;
use crate::it::shown::{columns, place, table};

/// Ten slow writes of a backup, two fast ones, and 28 fast reads of others, one after another.
fn calls() -> String {
    let mut lines = String::new();
    for number in 0..40 {
        let begin = 1000 + number * 10_000;
        let (length, comm) = match number % 4 {
            0 => (5000, "write write backup - 4096 /backup/1"),
            1 if number < 8 => (5, "write write backup - 4096 /backup/1"),
            _ => (5, "read read web - 100 /srv/index"),
        };
        writeln!(lines, "{begin} {} {comm}", begin + length).unwrap();
    }
    lines
}

fn differs() -> Query {
    let mut query = Query::new(Kind::Io, Verb::Differs);
    query.filter.dur_min = Some(1_000_000);
    query
}

fn shown(answer: &Answer) -> String {
    columns(
        table(answer, "differs"),
        &[
            "key",
            "value",
            "count",
            "share",
            "others",
            "others_share",
            "total_ns",
        ],
    )
}

#[test]
fn what_the_slow_ones_have_stands_first() {
    let mut query = differs();
    query.by = vec!["comm".into(), "file".into()];
    let answer = evaluate(&recording(&calls()), &query).unwrap();
    assert_eq!(
        shown(&answer),
        "file | /backup/1 | 10 | 1.000000e0 | 2 | 6.666667e-2 | 50000000\n\
         file | /srv/index | 0 | 0 | 28 | 9.333333e-1 | 0\n\
         comm | backup | 10 | 1.000000e0 | 2 | 6.666667e-2 | 50000000\n\
         comm | web | 0 | 0 | 28 | 9.333333e-1 | 0"
    );
    // 2 · C(12, 10) C(28, 0) / C(40, 10), the smallest of four equal values, which the correction
    // does not change.
    let differs = table(&answer, "differs");
    let Value::Float(q) = differs.rows[0][place(differs, "q")] else {
        panic!("q is a number");
    };
    assert!((q / 1.557_227_2e-7 - 1.0).abs() < 1e-6, "{q}");
    assert!(answer.caveats[0].starts_with("10 operations against 30 others: 4 values"));
}

#[test]
fn what_says_the_same_is_said_once() {
    let answer = evaluate(&recording(&calls()), &differs()).unwrap();
    let shown = shown(&answer);
    // Operation and system call select the same ten; so do file, directory and pattern.
    assert_eq!(
        shown
            .lines()
            .filter(|line| line.contains(" | write | "))
            .count(),
        1,
        "{shown}"
    );
    assert_eq!(
        shown.lines().filter(|line| line.contains("backup")).count(),
        2,
        "{shown}"
    );
}

#[test]
fn counts_are_those_of_statistics_over_the_same_windows() {
    // A backup in the first half, between the others' calls.
    let mut lines = String::new();
    let plain = calls().replace(" write write backup", " read read web");
    for (number, line) in (0..).zip(plain.lines()) {
        let begin = 6001 + number * 10_000;
        writeln!(lines, "{line}").unwrap();
        if number < 19 {
            writeln!(lines, "{begin} {} write write backup - 1 /b", begin + 1).unwrap();
        }
    }
    let tables = recording(&lines);
    let inside = Window::new(0, 200_000_000);
    let others = Window::new(200_000_000, 400_000_000);
    let mut query = Query::new(Kind::Io, Verb::Differs);
    query.window = Some(inside);
    query.baseline = Some(others);
    query.limit = Some(0);
    query.by = vec!["comm".into()];
    let answer = evaluate(&tables, &query).unwrap();
    let differs = table(&answer, "differs");
    assert!(!differs.rows.is_empty());
    for (window, column) in [(inside, "count"), (others, "others")] {
        let mut stats = Query::new(Kind::Io, Verb::Stats);
        stats.window = Some(window);
        stats.by = vec!["comm".into()];
        let stats = evaluate(&tables, &stats).unwrap();
        let stats = table(&stats, "stats");
        for row in &differs.rows {
            let comm = &row[place(differs, "value")];
            let same = |of: &&Vec<Value>| of[place(stats, "comm")] == *comm;
            let count = stats
                .rows
                .iter()
                .find(same)
                .map(|row| &row[place(stats, "count")]);
            assert_eq!(
                count.unwrap_or(&Value::Int(0)),
                &row[place(differs, column)]
            );
        }
    }
}

#[test]
fn all_of_them_differ_from_nobody() {
    let query = Query::new(Kind::Io, Verb::Differs);
    let error = evaluate(&recording(&calls()), &query).unwrap_err();
    assert!(
        error.to_string().contains("nothing to compare them with"),
        "{error}"
    );
    let mut query = differs();
    query.window = Some(Window::new(0, 50_000_000));
    query.baseline = Some(Window::new(40_000_000, 60_000_000));
    let error = evaluate(&recording(&calls()), &query).unwrap_err();
    assert!(error.to_string().contains("overlap"), "{error}");
}

#[test]
fn without_any_there_is_no_table_of_differences() {
    let mut query = differs();
    query.filter.dur_min = Some(1 << 40);
    let answer = evaluate(&recording(&calls()), &query).unwrap();
    assert!(table(&answer, "differs").rows.is_empty());
    assert!(
        answer
            .caveats
            .iter()
            .any(|one| one.contains("no operations selected"))
    );
}
