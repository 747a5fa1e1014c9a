//! `lttng-schedstats`, `-top`, `-freq` and `-log`: latency from a wakeup to the switch that follows
//! it. As in the original tools, waits after a preemption are not counted; `whyslow sched` includes
//! them.

use std::fmt::Write as _;

use whyslow_analysis::{Bins, Kind, Query, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Symbols;
use whyslow_model::answer::AnswerTable;
use whyslow_model::tables::TraceStatRow;

use super::analysis::{Analysis, PRIO_SHIFT, RangeQuery, Section, Wanted, run, tool, with_args};
use super::io::distribution;
use super::lami::{AVG, Cell, Column, MAX, MIN, STDEV, Table, TableClass};
use super::text::{self, Style};
use crate::cells::{Row, rows, rows_of};
use crate::tool::Tool;

pub(crate) static STATS: Tool = tool(
    "lttng-schedstats",
    "lttng-schedstats-mi",
    "Show scheduling latency by thread, by priority or in total",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::STATS),
);

pub(crate) static TOP: Tool = tool(
    "lttng-schedtop",
    "lttng-schedtop-mi",
    "Show the longest scheduling latencies",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::TOP),
);

pub(crate) static FREQ: Tool = tool(
    "lttng-schedfreq",
    "lttng-schedfreq-mi",
    "Show the distribution of scheduling latency",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::FREQ),
);

pub(crate) static LOG: Tool = tool(
    "lttng-schedlog",
    "lttng-schedlog-mi",
    "Show wakeups and switches in time order",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::LOG),
);

static ANALYSIS: Analysis = Analysis {
    title: "Scheduling latency",
    about: "Statistics, distributions, top list and log of the time from wakeup to switch",
    tags: &["linux-kernel", "sched"],
    classes: &[
        &LOG_ROWS,
        &TOP_ROWS,
        &TOTAL,
        &PER_TID,
        &PER_PRIO,
        &DISTRIBUTION,
    ],
    sections,
    summary: None,
    needs: "thread_state",
    options: &[
        "procname",
        "tid",
        "limit",
        "min",
        "max",
        "freq_resolution",
        "freq_uniform",
        "stats",
        "top",
        "freq",
        "log",
        "total",
        "per_tid",
        "per_prio",
    ],
};

const COUNT: Column = Column("Count", "number", Some("schedulings"));

const WAIT: &[Column] = &[
    Column("Wakeup", "timestamp", None),
    Column("Switch", "timestamp", None),
    Column("Latency", "duration", None),
    Column("Priority", "number", None),
    Column("CPU", "cpu", None),
    Column("Wakee", "process", None),
    Column("Waker", "process", None),
];

static LOG_ROWS: TableClass = TableClass {
    name: "log",
    title: "Scheduling log",
    columns: WAIT,
};

static TOP_ROWS: TableClass = TableClass {
    name: "top",
    title: "Scheduling top",
    columns: WAIT,
};

static TOTAL: TableClass = TableClass {
    name: "total_stats",
    title: "Scheduling latency stats (total)",
    columns: &[COUNT, MIN, AVG, MAX, STDEV],
};

static PER_TID: TableClass = TableClass {
    name: "per_tid_stats",
    title: "Scheduling latency stats (per-TID)",
    columns: &[
        Column("Process", "process", None),
        COUNT,
        MIN,
        AVG,
        MAX,
        STDEV,
        Column("Priorities", "string", None),
    ],
};

static PER_PRIO: TableClass = TableClass {
    name: "per_prio_stats",
    title: "Scheduling latency stats (per-prio)",
    columns: &[
        Column("Priority", "number", None),
        COUNT,
        MIN,
        AVG,
        MAX,
        STDEV,
    ],
};

static DISTRIBUTION: TableClass = TableClass {
    name: "freq",
    title: "Scheduling latency frequency distribution",
    columns: &[
        Column("From", "duration", None),
        Column("To", "duration", None),
        Column("Count", "number", Some("schedulings")),
    ],
};

/// Filter for run-queue waits that started with a wakeup. The first wait of a new thread is
/// included if its wakeup was recorded; otherwise the wait started with its creation.
struct Waits(Vec<String>);

impl Waits {
    fn of(ranged: &RangeQuery<'_>) -> Result<Self, Failure> {
        let mut symbols = Symbols::new();
        let stats = whyslow_store::rows::<TraceStatRow>(&*ranged.opened.tables, &mut symbols)?;
        let is_recorded = stats
            .iter()
            .any(|row| symbols.get(row.name) == "sched_wakeup_new" && row.count > 0);
        let created = is_recorded.then_some("created");
        let reasons = ["woken"].into_iter().chain(created);
        Ok(Self(reasons.map(String::from).collect()))
    }

    fn restrict(&self, query: &mut Query) {
        query.filter.ops.clone_from(&self.0);
    }
}

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    let args = ranged.args;
    let per_tid = args.per_tid || !(args.total || args.per_prio);
    let waits = &Waits::of(ranged)?;
    if ranged.wanted.top {
        let answer = ranged.run(Kind::Sched, Verb::Top, |query| {
            waits.restrict(query);
            query.limit = Some(args.limit);
        })?;
        let rows = rows(&answer, "top_").iter().map(wait).collect();
        sections.push(ranged.section(&TOP_ROWS, None, rows, waits_text));
    }
    if ranged.wanted.log {
        let answer = ranged.run(Kind::Sched, Verb::Log, |query| waits.restrict(query))?;
        let rows = rows(&answer, "log");
        let ended = rows.iter().filter(|row| row.int("ts_end_ns").is_some());
        let rows = ended.map(wait).collect();
        sections.push(ranged.section(&LOG_ROWS, None, rows, waits_text));
    }
    if ranged.wanted.stats && args.total {
        let rows = stats((ranged, waits), "none", |_| Vec::new())?;
        sections.push(ranged.section(&TOTAL, None, rows, total_text));
    }
    if ranged.wanted.stats && per_tid {
        let mut rows = stats((ranged, waits), "thread", |row| vec![thread(row)])?;
        let priorities = priorities(ranged, waits)?;
        for row in &mut rows {
            let tid = match row.first() {
                Some(Cell::Process { tid, .. }) => *tid,
                _ => None,
            };
            let of_thread = tid.and_then(|tid| priorities.get(&tid));
            row.push(Cell::Text(format!(
                "{:?}",
                of_thread.cloned().unwrap_or_default()
            )));
        }
        rows.sort_by_key(|row| text::process(&row[0]));
        sections.push(ranged.section(&PER_TID, None, rows, per_tid_text));
    }
    if ranged.wanted.stats && args.per_prio {
        let prio = |row: &Row<'_>| {
            let prio = row.int("prio").map(|prio| prio - PRIO_SHIFT);
            vec![prio.map_or(Cell::Unknown, Cell::Number)]
        };
        let mut rows = stats((ranged, waits), "prio", prio)?;
        rows.sort_by_key(|row| match row.first() {
            Some(Cell::Number(prio)) => *prio,
            _ => i64::MIN,
        });
        sections.push(ranged.section(&PER_PRIO, None, rows, per_prio_text));
    }
    if ranged.wanted.freq {
        let by = [
            (args.total, "none"),
            (per_tid, "thread"),
            (args.per_prio, "prio"),
        ];
        for (_, key) in by.iter().filter(|(wanted, _)| *wanted) {
            sections.extend(distributions((ranged, waits), key)?);
        }
    }
    Ok(sections)
}

/// A distribution for each thread, each priority, or in total.
fn distributions(
    (ranged, waits): (&RangeQuery<'_>, &Waits),
    key: &str,
) -> Result<Vec<Section>, Failure> {
    let answer = ranged.run(Kind::Sched, Verb::Hist, |query| {
        waits.restrict(query);
        query.by = vec![key.into()];
        query.bins = Bins::Linear {
            count: usize::from(ranged.args.freq_resolution),
            uniform: ranged.args.freq_uniform,
        };
    })?;
    let number = |title: &str| -> Option<i64> {
        let digits = |letter: char| letter.is_ascii_digit() || letter == '-';
        title
            .rsplit(|letter| !digits(letter))
            .find_map(|part| part.parse().ok())
    };
    let mut tables: Vec<_> = answer
        .tables
        .iter()
        .map(|table| (number(&table.title), table))
        .collect();
    tables.sort_by_key(|(number, _)| *number);
    let section = |(number, table): (Option<i64>, &AnswerTable)| {
        let rows: Vec<Row<'_>> = rows_of(table).collect();
        let subtitle = match (key, number) {
            ("thread", Some(tid)) => Some(format!("TID: {tid}")),
            ("prio", Some(prio)) => Some(format!("Priority: {}", prio - PRIO_SHIFT)),
            _ => None,
        };
        ranged.section(
            &DISTRIBUTION,
            subtitle,
            distribution(ranged, &rows),
            text::distribution,
        )
    };
    Ok(tables.into_iter().map(section).collect())
}

fn thread(row: &Row<'_>) -> Cell {
    Cell::Process {
        name: row.text("comm").map(String::from),
        pid: None,
        tid: row.int("tid"),
    }
}

fn wait(row: &Row<'_>) -> Vec<Cell> {
    let waker = row.text("waker").map_or(Cell::Unknown, |label| {
        let (name, tid) = label.rsplit_once(" (").unwrap_or((label, ""));
        Cell::Process {
            name: Some(name.into()),
            pid: None,
            tid: tid.trim_end_matches(')').parse().ok(),
        }
    });
    let number = |column: &str| row.int(column);
    vec![
        number("ts_ns").map_or(Cell::Unknown, Cell::Time),
        number("ts_end_ns").map_or(Cell::Unknown, Cell::Time),
        Cell::duration(row.float("dur_ns")),
        number("prio").map_or(Cell::Unknown, |prio| Cell::Number(prio - PRIO_SHIFT)),
        number("cpu").map_or(Cell::Unknown, Cell::Cpu),
        thread(row),
        waker,
    ]
}

fn stats(
    (ranged, waits): (&RangeQuery<'_>, &Waits),
    by: &str,
    first: impl Fn(&Row<'_>) -> Vec<Cell>,
) -> Result<Vec<Vec<Cell>>, Failure> {
    let answer = ranged.run(Kind::Sched, Verb::Stats, |query| {
        waits.restrict(query);
        query.by = vec![by.into()];
    })?;
    let known = |row: &Row<'_>| row.int("count").unwrap_or(0) - row.int("unfinished").unwrap_or(0);
    let rows = rows(&answer, "stats");
    let rows = rows.iter().filter(|row| known(row) > 0);
    Ok(rows
        .map(|row| {
            let mut cells = first(row);
            cells.extend([
                Cell::Number(known(row)),
                Cell::duration(row.float("min_ns")),
                Cell::duration(row.float("avg_ns")),
                Cell::duration(row.float("max_ns")),
                Cell::duration(row.float("stdev_ns")),
            ]);
            cells
        })
        .collect())
}

/// Priorities with which each thread waited.
fn priorities(
    ranged: &RangeQuery<'_>,
    waits: &Waits,
) -> Result<std::collections::BTreeMap<i64, Vec<i64>>, Failure> {
    let answer = ranged.run(Kind::Sched, Verb::Stats, |query| {
        waits.restrict(query);
        query.by = vec!["tid".into(), "prio".into()];
    })?;
    let mut found = std::collections::BTreeMap::<i64, Vec<i64>>::new();
    for row in rows(&answer, "stats") {
        if let (Some(tid), Some(prio)) = (row.int("tid"), row.int("prio")) {
            found.entry(tid).or_default().push(prio - PRIO_SHIFT);
        }
    }
    for prios in found.values_mut() {
        prios.sort_unstable();
    }
    Ok(found)
}

fn waits_text(table: &Table, style: &Style) -> String {
    let mut text = format!(
        "\n{}\n{:<20} {:<20} {:<13} {:<10}{:<5} {:<26} {:<25}\n",
        table.class.title, "Wakeup", "Switch", "Latency (us)", "Priority", "CPU", "Wakee", "Waker"
    );
    for row in &table.rows {
        let [from, to, latency, prio, cpu, wakee, waker] = row.as_slice() else {
            continue;
        };
        let at = |cell: &Cell| match cell {
            Cell::Time(ts) => style.time(*ts),
            _ => "?".into(),
        };
        let _ = writeln!(
            text,
            "[{}, {}] {:>15} {:>10} {:>4}   {:<26} {}",
            at(from),
            at(to),
            text::us(latency),
            text::plain(prio),
            text::plain(cpu),
            text::process(wakee),
            text::process(waker)
        );
    }
    text
}

fn total_text(table: &Table, _: &Style) -> String {
    let mut text = format!(
        "\n{} (us)\n{:<12} {:<12} {:<12} {:<12} {:<12}\n",
        table.class.title, "Count", "Min", "Avg", "Max", "Stdev"
    );
    for row in &table.rows {
        if let [count, min, avg, max, stdev] = row.as_slice() {
            let _ = writeln!(
                text,
                "{:<12} {:<12} {:<12} {:<12} {:<12}",
                text::number(count),
                text::us(min),
                text::us(avg),
                text::us(max),
                text::us(stdev)
            );
        }
    }
    text
}

fn per_tid_text(table: &Table, _: &Style) -> String {
    let mut text = format!(
        "\n{} (us)\n{:<25} {:>8} {:>13} {:>13} {:>13} {:>13}   {}\n",
        table.class.title, "Process", "Count", "Min", "Avg", "Max", "Stdev", "Priorities"
    );
    for row in &table.rows {
        if let [process, count, min, avg, max, stdev, prios] = row.as_slice() {
            let _ = writeln!(
                text,
                "{:<25} {:>8} {:>13} {:>13} {:>13} {:>13}   {}",
                text::process(process),
                text::number(count),
                text::us(min),
                text::us(avg),
                text::us(max),
                text::us(stdev),
                text::plain(prios)
            );
        }
    }
    text
}

fn per_prio_text(table: &Table, _: &Style) -> String {
    let mut text = format!(
        "\n{} (us)\n{:<4} {:>8} {:>13} {:>13} {:>13} {:>13}\n",
        table.class.title, "Prio", "Count", "Min", "Avg", "Max", "Stdev"
    );
    for row in &table.rows {
        if let [prio, count, min, avg, max, stdev] = row.as_slice() {
            let _ = writeln!(
                text,
                "{:>4} {:>8} {:>13} {:>13} {:>13} {:>13}",
                text::number(prio),
                text::number(count),
                text::us(min),
                text::us(avg),
                text::us(max),
                text::us(stdev)
            );
        }
    }
    text
}
