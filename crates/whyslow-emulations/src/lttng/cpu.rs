//! `lttng-cputop`: CPU time by thread, by CPU and in total.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use whyslow_analysis::{Kind, Verb};
use whyslow_base::failure::Failure;

use super::analysis::{
    Analysis, PRIO_SHIFT, Pids, RangeQuery, Section, Wanted, run, tool, with_args,
};
use super::lami::{Cell, Column, Table, TableClass};
use super::text::{self, Bar, Style};
use crate::cells::{Row, rows};
use crate::tool::Tool;

pub(crate) static TOP: Tool = tool(
    "lttng-cputop",
    "lttng-cputop-mi",
    "Show CPU time by thread and CPU",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::USAGE),
);

static ANALYSIS: Analysis = Analysis {
    title: "CPU usage",
    about: "CPU time by thread and by CPU",
    tags: &["linux-kernel", "cpu"],
    classes: &[&THREADS, &CPUS, &TOTAL, &SUMMARY],
    sections,
    summary: Some(&SUMMARY),
    needs: "sched_slice",
    options: &["procname", "tid", "limit"],
};

const USAGE: Column = Column("CPU usage", "ratio", None);

static THREADS: TableClass = TableClass {
    name: "per-process",
    title: "Per-TID Usage",
    columns: &[
        Column("Process", "process", None),
        Column("Migrations", "number", Some("migrations")),
        Column("Priorities", "string", None),
        USAGE,
    ],
};

static CPUS: TableClass = TableClass {
    name: "per-cpu",
    title: "Per-CPU Usage",
    columns: &[Column("CPU", "cpu", None), USAGE],
};

static TOTAL: TableClass = TableClass {
    name: "total",
    title: "Total CPU Usage",
    columns: &[USAGE],
};

static SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "Total CPU usage by part of the range",
    columns: &[Column("Range", "time-range", None), USAGE],
};

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let pids = Pids::of(ranged)?;
    let by = |keys: &[&str]| keys.iter().map(|key| String::from(*key)).collect();
    let limit = ranged.args.limit;
    let threads = ranged.run(Kind::Cpu, Verb::Usage, |query| {
        query.by = by(&["thread"]);
        query.limit = Some(limit);
    })?;
    let priorities = ranged.run(Kind::Cpu, Verb::Usage, |query| {
        query.by = by(&["thread", "prio"]);
    })?;
    let mut prios: BTreeMap<(i64, &str), Vec<i64>> = BTreeMap::new();
    let priorities = rows(&priorities, "usage");
    for row in &priorities {
        if let (Some(tid), Some(prio)) = (row.int("tid"), row.int("prio")) {
            let of_thread = prios.entry((tid, row.text("comm").unwrap_or("")));
            of_thread.or_default().push(prio - PRIO_SHIFT);
        }
    }
    let thread = |row: &Row<'_>| {
        let key = (row.int("tid").unwrap_or(-1), row.text("comm").unwrap_or(""));
        let mut prios = prios.get(&key).cloned().unwrap_or_default();
        prios.sort_unstable();
        vec![
            pids.process(row),
            Cell::Number(row.int("migrations").unwrap_or(0)),
            Cell::Text(format!("{prios:?}")),
            Cell::ratio(row.float("cpu_ratio")),
        ]
    };
    let threads = rows(&threads, "usage").iter().map(thread).collect();
    let cpus = ranged.run(Kind::Cpu, Verb::Usage, |query| {
        query.by = by(&["cpu"]);
        // A filter by thread must not affect the totals of a CPU.
        query.filter.tids.clear();
        query.filter.comms.clear();
    })?;
    let mut cpus = rows(&cpus, "cpus");
    cpus.sort_by_key(|row| row.int("cpu"));
    let busy: Vec<f64> = cpus
        .iter()
        .filter_map(|row| row.float("busy_ratio"))
        .collect();
    let mean = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64);
    let cpu = |row: &Row<'_>| {
        vec![
            row.int("cpu").map_or(Cell::Unknown, Cell::Cpu),
            Cell::ratio(row.float("busy_ratio")),
        ]
    };
    let cpus: Vec<Vec<Cell>> = cpus.iter().map(cpu).collect();
    let total = if cpus.is_empty() {
        Vec::new()
    } else {
        vec![vec![Cell::ratio(mean)]]
    };
    Ok(vec![
        ranged.section(&THREADS, None, threads, threads_text),
        ranged.section(&CPUS, None, cpus, cpus_text),
        ranged.section(&TOTAL, None, total, total_text),
    ])
}

fn threads_text(table: &Table, _: &Style) -> String {
    let bars = table.rows.iter().filter_map(|row| {
        let [process, migrations, prios, usage] = row.as_slice() else {
            return None;
        };
        Some(Bar {
            amount: usage.amount(),
            value: text::percent(usage),
            label: format!(
                "{:<25} {:>10}   {}",
                text::process(process),
                text::number(migrations),
                text::plain(prios)
            ),
        })
    });
    text::graph(
        table.class.title,
        "Process                   Migrations   Priorities",
        bars,
    )
}

fn cpus_text(table: &Table, _: &Style) -> String {
    let bars = table.rows.iter().filter_map(|row| {
        let [cpu, usage] = row.as_slice() else {
            return None;
        };
        Some(Bar {
            amount: usage.amount(),
            value: text::percent(usage),
            label: format!("CPU {}", text::plain(cpu)),
        })
    });
    text::graph(table.class.title, "", bars)
}

fn total_text(table: &Table, _: &Style) -> String {
    let mut text = String::new();
    for usage in table.rows.iter().flatten() {
        let _ = writeln!(text, "\n{}: {}", table.class.title, text::percent(usage));
    }
    text
}
