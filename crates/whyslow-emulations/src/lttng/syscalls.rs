//! `lttng-syscallstats`: all system calls of each thread, with errors.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use whyslow_analysis::{Kind, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::analysis::{Analysis, Pids, RangeQuery, Section, Wanted, run, tool, with_args};
use super::lami::{AVG, Cell, Column, MAX, MIN, STDEV, Table, TableClass};
use super::text::{self, Style};
use crate::cells::{Row, rows};
use crate::tool::Tool;

pub(crate) static STATS: Tool = tool(
    "lttng-syscallstats",
    "lttng-syscallstats-mi",
    "Show count, latency and errors of the system calls of each thread",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::USAGE),
);

static ANALYSIS: Analysis = Analysis {
    title: "System call statistics",
    about: "Count, latency and errors of system calls by thread",
    tags: &["linux-kernel", "syscall"],
    classes: &[&PER_TID, &TOTAL, &SUMMARY],
    sections,
    summary: Some(&SUMMARY),
    needs: "syscall",
    options: &["procname", "tid"],
};

const CALLS: Column = Column("Count", "number", Some("calls"));

static PER_TID: TableClass = TableClass {
    name: "per-tid",
    title: "System calls of a thread",
    columns: &[
        Column("System call", "syscall", None),
        CALLS,
        MIN,
        AVG,
        MAX,
        STDEV,
        Column("Return values", "string", None),
    ],
};

static TOTAL: TableClass = TableClass {
    name: "total",
    title: "System calls by thread",
    columns: &[Column("Process", "process", None), CALLS],
};

static SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "System calls by thread and part of the range",
    columns: &[
        Column("Range", "time-range", None),
        Column("Process", "process", None),
        CALLS,
    ],
};

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let pids = Pids::of(ranged)?;
    let answer = ranged.run(Kind::Syscalls, Verb::Stats, |query| {
        query.by = vec!["thread".into(), "name".into()];
        // Calls cut by the recording have no latency, and half of them no result.
        let longest = query.filter.dur_max.unwrap_or(Ns::MAX);
        query.filter.dur_max = Some(longest.min(Ns::MAX - 1));
    })?;
    let found = rows(&answer, "syscalls");
    let mut threads: BTreeMap<(i64, &str), Vec<&Row<'_>>> = BTreeMap::new();
    for row in found.iter().filter(|row| finished(row) > 0) {
        let key = (row.int("tid").unwrap_or(-1), row.text("comm").unwrap_or(""));
        threads.entry(key).or_default().push(row);
    }
    let mut threads: Vec<(i64, Vec<&Row<'_>>)> = threads
        .into_values()
        .map(|calls| (calls.iter().map(|row| finished(row)).sum(), calls))
        .collect();
    threads.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut sections = Vec::new();
    let mut totals = Vec::new();
    for (count, mut calls) in threads {
        calls.sort_by_key(|row| std::cmp::Reverse(finished(row)));
        let process = pids.process(calls[0]);
        let cells = calls.into_iter().map(call).collect();
        sections.push(ranged.section(&PER_TID, Some(name(&process)), cells, thread_text));
        totals.push(vec![process, Cell::Number(count)]);
    }
    sections.push(ranged.section(&TOTAL, None, totals, total_text));
    Ok(sections)
}

/// Number of calls with known latency and result.
fn finished(row: &Row<'_>) -> i64 {
    row.int("count").unwrap_or(0) - row.int("unfinished").unwrap_or(0)
}

fn call(row: &Row<'_>) -> Vec<Cell> {
    vec![
        Cell::Syscall(row.text("name").unwrap_or("?").into()),
        Cell::Number(finished(row)),
        Cell::duration(row.float("min_ns")),
        Cell::duration(row.float("avg_ns")),
        Cell::duration(row.float("max_ns")),
        Cell::duration(row.float("stdev_ns")),
        Cell::Text(returned(row)),
    ]
}

/// `{'success': 3, 'ENOENT': 2}`
fn returned(row: &Row<'_>) -> String {
    let succeeded = finished(row) - row.int("errors").unwrap_or(0);
    let errors = row.list("errnos").into_iter();
    let errors = errors.filter_map(|error| {
        let (name, count) = error.split_once(' ')?;
        Some(format!("'{name}': {count}"))
    });
    let success = (succeeded > 0).then(|| format!("'success': {succeeded}"));
    let all: Vec<String> = success.into_iter().chain(errors).collect();
    format!("{{{}}}", all.join(", "))
}

/// `comm (pid, TID: tid)`
fn name(process: &Cell) -> String {
    let Cell::Process { name, pid, tid } = process else {
        return "?".into();
    };
    let number = |id: &Option<i64>| id.map_or_else(|| "?".into(), |id| id.to_string());
    format!(
        "{} ({}, TID: {})",
        name.as_deref().unwrap_or("?"),
        number(pid),
        number(tid)
    )
}

fn thread_text(table: &Table, _: &Style) -> String {
    let title = table.subtitle.as_deref().unwrap_or("");
    let mut text = format!(
        "{:<45}{:>8} {:>14} {:>14} {:>12} {:>10}  {}\n",
        whyslow_model::text::shown(title, false),
        "Count",
        "Min (usec)",
        "Average",
        "Max",
        "Stdev",
        "Return values"
    );
    let mut total = 0;
    for row in &table.rows {
        let [name, count, min, avg, max, stdev, returned] = row.as_slice() else {
            continue;
        };
        if let Cell::Number(count) = count {
            total += count;
        }
        let _ = writeln!(
            text,
            " - {:<42}{:>8} {:>14} {:>14} {:>12} {:>10}  {}",
            text::plain(name),
            text::number(count),
            text::us(min),
            text::us(avg),
            text::us(max),
            text::us(stdev),
            text::plain(returned)
        );
    }
    let _ = writeln!(text, "{:<45}{total:>8}\n{}", "Total:", "-".repeat(113));
    text
}

fn total_text(table: &Table, _: &Style) -> String {
    let count = |row: &Vec<Cell>| match row.get(1) {
        Some(Cell::Number(count)) => *count,
        _ => 0,
    };
    let total: i64 = table.rows.iter().map(count).sum();
    format!("\nTotal syscalls: {total}\n")
}
