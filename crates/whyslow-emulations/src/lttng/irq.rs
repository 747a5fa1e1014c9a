//! `lttng-irqstats`, `-freq` and `-log`.

use std::fmt::Write as _;

use whyslow_analysis::{Bins, Kind, Query, Verb};
use whyslow_base::failure::Failure;

use super::analysis::{Analysis, RangeQuery, Section, Wanted, run, tool, with_args};
use super::io::distribution;
use super::lami::{AVG, Cell, Column, MAX, MIN, STDEV, Table, TableClass};
use super::text::{self, Style};
use crate::cells::{Row, rows, rows_of};
use crate::tool::Tool;

pub(crate) static STATS: Tool = tool(
    "lttng-irqstats",
    "lttng-irqstats-mi",
    "Show count and duration of interrupt handlers, and raise latency of softirqs",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::STATS),
);

pub(crate) static FREQ: Tool = tool(
    "lttng-irqfreq",
    "lttng-irqfreq-mi",
    "Show the duration distribution of interrupt handlers",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::FREQ),
);

pub(crate) static LOG: Tool = tool(
    "lttng-irqlog",
    "lttng-irqlog-mi",
    "Show interrupt handlers in time order",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::LOG),
);

static ANALYSIS: Analysis = Analysis {
    title: "Interrupts",
    about: "Statistics, distributions and log of hardware interrupts and softirqs",
    tags: &["linux-kernel", "interrupt"],
    classes: &[&HARD, &SOFT, &DISTRIBUTION, &HANDLERS],
    sections,
    summary: None,
    needs: "irq",
    options: &[
        "min",
        "max",
        "freq_resolution",
        "freq_uniform",
        "stats",
        "freq",
        "log",
        "irq",
        "softirq",
    ],
};

const IRQ: Column = Column("Interrupt", "irq", None);
const COUNT: Column = Column("Count", "number", Some("interrupts"));

static HARD: TableClass = TableClass {
    name: "hard-stats",
    title: "Hard IRQ",
    columns: &[IRQ, COUNT, MIN, AVG, MAX, STDEV],
};

static SOFT: TableClass = TableClass {
    name: "soft-stats",
    title: "Soft IRQ",
    columns: &[
        IRQ,
        COUNT,
        MIN,
        AVG,
        MAX,
        STDEV,
        Column("Raised", "number", Some("interrupt raises")),
        Column("Minimum raise latency", "duration", None),
        Column("Average raise latency", "duration", None),
        Column("Maximum raise latency", "duration", None),
        Column("Standard deviation of raise latency", "duration", None),
    ],
};

static DISTRIBUTION: TableClass = TableClass {
    name: "freq",
    title: "Handler duration frequency distribution",
    columns: &[
        Column("From", "duration", None),
        Column("To", "duration", None),
        Column("Count", "number", Some("interrupts")),
    ],
};

static HANDLERS: TableClass = TableClass {
    name: "log",
    title: "Interrupt log",
    columns: &[
        Column("Time range", "time-range", None),
        Column("Raised", "timestamp", None),
        Column("CPU", "cpu", None),
        IRQ,
    ],
};

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    if ranged.wanted.stats {
        let hard = stats(ranged, "hard")?;
        sections.push(ranged.section(&HARD, None, hard, stats_text));
        let soft = stats(ranged, "soft")?;
        sections.push(ranged.section(&SOFT, None, soft, stats_text));
    }
    if ranged.wanted.freq {
        for kind in ["hard", "soft"] {
            let answer = ranged.run(Kind::Irq, Verb::Hist, |query| {
                of_kind(query, kind);
                query.by = vec!["name".into(), "nr".into()];
                query.bins = Bins::Linear {
                    count: usize::from(ranged.args.freq_resolution),
                    uniform: ranged.args.freq_uniform,
                };
            })?;
            for table in answer
                .tables
                .iter()
                .filter(|table| table.name.starts_with("hist"))
            {
                let rows: Vec<Row<'_>> = rows_of(table).collect();
                let (name, nr) = table
                    .title
                    .rsplit_once(" nr ")
                    .unwrap_or((&table.title, "?"));
                if !is_wanted(ranged, kind, nr.parse().ok()) {
                    continue;
                }
                let name = format!("{} ({nr})", named(kind == "hard", name));
                let rows = distribution(ranged, &rows);
                sections.push(ranged.section(&DISTRIBUTION, Some(name), rows, text::distribution));
            }
        }
    }
    if ranged.wanted.log {
        let answer = ranged.run(Kind::Irq, Verb::Log, |query| {
            query.filter.ops = vec!["hard".into(), "soft".into()];
        })?;
        let rows = rows(&answer, "log");
        let rows = rows.iter().filter(|row| wants(ranged, row)).map(handler);
        sections.push(ranged.section(&HANDLERS, None, rows.collect(), log_text));
    }
    Ok(sections)
}

fn of_kind(query: &mut Query, kind: &str) {
    query.filter.ops = vec![kind.into()];
}

/// Whether the filters by number accept the interrupt.
fn wants(ranged: &RangeQuery<'_>, row: &Row<'_>) -> bool {
    is_wanted(ranged, row.text("kind").unwrap_or(""), row.int("nr"))
}

fn is_wanted(ranged: &RangeQuery<'_>, kind: &str, nr: Option<i64>) -> bool {
    let (irqs, softirqs) = (&ranged.args.irq, &ranged.args.softirq);
    let numbers = if kind == "hard" { irqs } else { softirqs };
    if irqs.is_empty() && softirqs.is_empty() {
        return true;
    }
    nr.is_some_and(|nr| numbers.contains(&nr))
}

fn irq(row: &Row<'_>) -> Cell {
    let hard = row.text("kind") == Some("hard");
    Cell::Irq {
        hard,
        nr: row.int("nr").unwrap_or(-1),
        name: row.text("name").map(|name| named(hard, name)),
    }
}

/// Softirqs are named after the kernel's constants.
fn named(hard: bool, name: &str) -> String {
    if hard {
        name.to_owned()
    } else {
        format!("{name}_SOFTIRQ")
    }
}

fn stats(ranged: &RangeQuery<'_>, kind: &str) -> Result<Vec<Vec<Cell>>, Failure> {
    let answer = ranged.run(Kind::Irq, Verb::Stats, |query| of_kind(query, kind))?;
    let mut found = rows(&answer, "stats");
    found.retain(|row| wants(ranged, row));
    found.sort_by_key(|row| row.int("nr"));
    let cells = |row: &Row<'_>| {
        let known = row.int("count").unwrap_or(0) - row.int("unfinished").unwrap_or(0);
        let mut cells = vec![
            irq(row),
            Cell::Number(known),
            Cell::duration(row.float("min_ns")),
            Cell::duration(row.float("avg_ns")),
            Cell::duration(row.float("max_ns")),
            Cell::duration(row.float("stdev_ns")),
        ];
        if kind == "soft" {
            cells.push(Cell::Number(row.int("raise_count").unwrap_or(0)));
            for column in [
                "raise_min_ns",
                "raise_avg_ns",
                "raise_max_ns",
                "raise_stdev_ns",
            ] {
                cells.push(Cell::duration(row.float(column)));
            }
        }
        cells
    };
    Ok(found.iter().map(cells).collect())
}

fn handler(row: &Row<'_>) -> Vec<Cell> {
    let begin = row.int("ts_ns").unwrap_or(0);
    vec![
        Cell::Range(begin, row.int("ts_end_ns").unwrap_or(begin)),
        row.int("ts_raise_ns").map_or(Cell::Empty, Cell::Time),
        row.int("cpu").map_or(Cell::Unknown, Cell::Cpu),
        irq(row),
    ]
}

fn name_of(cell: &Cell) -> (i64, String) {
    match cell {
        Cell::Irq { nr, name, .. } => {
            let name = name.as_deref().unwrap_or("unknown");
            (*nr, whyslow_model::text::shown(name, false).into_owned())
        }
        _ => (-1, "unknown".into()),
    }
}

fn stats_text(table: &Table, _: &Style) -> String {
    let is_soft = table.class.name == "soft-stats";
    let titles = |what: &str| format!("{:<53}", format!("{:>33}", what));
    let mut text = format!("{:<20}{}", table.class.title, titles("Duration (us)"));
    if is_soft {
        text += &titles("Raise latency (us)");
    }
    let columns = format!(
        "{:>8} {:>12} {:>12} {:>12} {:>12}  |",
        "count", "min", "avg", "max", "stdev"
    );
    let _ = write!(text, "\n{:<20}{columns}", "");
    if is_soft {
        text += &columns;
    }
    let width = if is_soft { 143 } else { 82 };
    let _ = writeln!(text, "\n{}|", "-".repeat(width));
    for row in &table.rows {
        let Some((name, figures)) = row.split_first() else {
            continue;
        };
        let (nr, name) = name_of(name);
        let _ = write!(text, "{:<20}", format!("{:<3} <{name}>", format!("{nr}:")));
        for figures in figures.chunks(5) {
            if let [count, min, avg, max, stdev] = figures {
                let _ = write!(
                    text,
                    "{:>8} {:>12} {:>12} {:>12} {:>12}  |",
                    text::number(count),
                    text::us(min),
                    text::us(avg),
                    text::us(max),
                    text::us(stdev)
                );
            }
        }
        text.push('\n');
    }
    text + "\n"
}

fn log_text(table: &Table, style: &Style) -> String {
    let mut text = format!(
        "{:<20} {:<21} {:<13}  {:<4} {:<9} {:>3}  {:<22}\n",
        "Begin", "End", "Duration (us)", "CPU", "Type", "#", "Name"
    );
    for row in &table.rows {
        let [Cell::Range(begin, end), raised, cpu, irq] = row.as_slice() else {
            continue;
        };
        let (nr, name) = name_of(irq);
        let kind = if matches!(irq, Cell::Irq { hard: true, .. }) {
            "IRQ"
        } else {
            "SoftIRQ"
        };
        let duration = text::us(&Cell::Duration((end - begin) as f64));
        let raised = match raised {
            Cell::Time(ts) => format!(" (raised at {})", style.time(*ts)),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "[{}, {}] {duration:>15} {:>4}  {kind:<9} {nr:>4}  {name:<22}{raised}",
            style.time(*begin),
            style.time(*end),
            text::plain(cpu)
        );
    }
    text
}
