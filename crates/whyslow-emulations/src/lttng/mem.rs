//! `lttng-memtop`: pages of memory allocated and freed by thread.

use std::fmt::Write as _;

use whyslow_analysis::{Kind, Verb};
use whyslow_base::failure::Failure;

use super::analysis::{Analysis, Pids, RangeQuery, Section, Wanted, run, tool, with_args};
use super::lami::{Cell, Column, Table, TableClass};
use super::text::{self, Bar, Style};
use crate::cells::rows;
use crate::tool::Tool;

pub(crate) static TOP: Tool = tool(
    "lttng-memtop",
    "lttng-memtop-mi",
    "Show memory pages allocated and freed by thread",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::USAGE),
);

static ANALYSIS: Analysis = Analysis {
    title: "Memory usage",
    about: "Pages allocated and freed by thread",
    tags: &["linux-kernel", "memory"],
    classes: &[&ALLOCATED, &FREED, &TOTAL, &SUMMARY],
    sections,
    summary: Some(&SUMMARY),
    needs: "page_count",
    options: &["procname", "tid", "limit"],
};

const PAGES: Option<&str> = Some("pages");

static ALLOCATED: TableClass = TableClass {
    name: "allocd",
    title: "Per-TID Memory Allocations",
    columns: &[
        Column("Process", "process", None),
        Column("Allocated", "number", PAGES),
    ],
};

static FREED: TableClass = TableClass {
    name: "freed",
    title: "Per-TID Memory Deallocations",
    columns: &[
        Column("Process", "process", None),
        Column("Freed", "number", PAGES),
    ],
};

static TOTAL: TableClass = TableClass {
    name: "total",
    title: "Total memory usage",
    columns: &[
        Column("Allocated", "number", PAGES),
        Column("Freed", "number", PAGES),
    ],
};

static SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "Memory usage by part of the range",
    columns: &[
        Column("Range", "time-range", None),
        Column("Allocated", "number", PAGES),
        Column("Freed", "number", PAGES),
    ],
};

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let pids = Pids::of(ranged)?;
    let answer = ranged.run(Kind::Mem, Verb::Usage, |query| {
        query.by = vec!["thread".into()];
    })?;
    let found = rows(&answer, "usage");
    let of = |column: &str| {
        let count = |row: &crate::cells::Row<'_>| row.int(column).unwrap_or(0);
        let mut rows: Vec<_> = found.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(count(row)));
        if ranged.args.limit > 0 {
            rows.truncate(ranged.args.limit);
        }
        let cells = rows
            .into_iter()
            .map(|row| vec![pids.process(row), Cell::Number(count(row))]);
        let total: i64 = found.iter().map(count).sum();
        (cells.collect::<Vec<_>>(), total)
    };
    let (allocated, allocated_total) = of("allocated_pages");
    let (freed, freed_total) = of("freed_pages");
    let total = if found.is_empty() {
        Vec::new()
    } else {
        vec![vec![
            Cell::Number(allocated_total),
            Cell::Number(freed_total),
        ]]
    };
    Ok(vec![
        ranged.section(&ALLOCATED, None, allocated, pages_text),
        ranged.section(&FREED, None, freed, pages_text),
        ranged.section(&TOTAL, None, total, total_text),
    ])
}

fn pages_text(table: &Table, _: &Style) -> String {
    let bars = table.rows.iter().filter_map(|row| {
        let [process, pages] = row.as_slice() else {
            return None;
        };
        Some(Bar {
            amount: pages.amount(),
            value: format!("{} pages", text::number(pages)),
            label: text::process(process),
        })
    });
    text::graph(table.class.title, "Process", bars)
}

fn total_text(table: &Table, _: &Style) -> String {
    let mut text = String::new();
    for row in &table.rows {
        if let [allocated, freed] = row.as_slice() {
            let _ = writeln!(
                text,
                "\n{}:\n- {} pages allocated\n- {} pages freed",
                table.class.title,
                text::number(allocated),
                text::number(freed)
            );
        }
    }
    text
}
