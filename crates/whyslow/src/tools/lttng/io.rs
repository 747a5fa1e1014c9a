//! `lttng-iolatencystats`, `-top`, `-freq` and `lttng-iolog`.

use std::fmt::Write as _;

use whyslow_analysis::{Bins, Kind, Question, Verb};

use super::lami::{Cell, Column, Table, TableClass};
use super::text::{self, Style};
use super::{Analysis, Asking, Section, Wanted, run, with_args};
use crate::failure::Failure;
use crate::tools::Tool;
use crate::tools::asked::{Row, rows};

pub(crate) static STATS: Tool = Tool {
    name: "lttng-iolatencystats",
    machine_name: Some("lttng-iolatencystats-mi"),
    about: "Latency of opens, reads, writes and syncs, and of disks",
    args: with_args,
    run: |call| {
        let stats = Wanted {
            stats: true,
            ..Wanted::default()
        };
        run(call, &ANALYSIS, stats)
    },
};

pub(crate) static TOP: Tool = Tool {
    name: "lttng-iolatencytop",
    machine_name: Some("lttng-iolatencytop-mi"),
    about: "The longest opens, reads, writes and syncs",
    args: with_args,
    run: |call| {
        let top = Wanted {
            top: true,
            ..Wanted::default()
        };
        run(call, &ANALYSIS, top)
    },
};

pub(crate) static FREQ: Tool = Tool {
    name: "lttng-iolatencyfreq",
    machine_name: Some("lttng-iolatencyfreq-mi"),
    about: "Distribution of the latency of opens, reads, writes, syncs and disks",
    args: with_args,
    run: |call| {
        let freq = Wanted {
            freq: true,
            ..Wanted::default()
        };
        run(call, &ANALYSIS, freq)
    },
};

pub(crate) static LOG: Tool = Tool {
    name: "lttng-iolog",
    machine_name: Some("lttng-iolog-mi"),
    about: "Opens, closes, reads, writes and syncs in order of time",
    args: with_args,
    run: |call| {
        let log = Wanted {
            log: true,
            ..Wanted::default()
        };
        run(call, &ANALYSIS, log)
    },
};

static ANALYSIS: Analysis = Analysis {
    title: "I/O latency",
    about: "Statistics, distributions, top lists and a log of I/O system calls and disks",
    tags: &["linux-kernel", "io", "syscall", "disk"],
    classes: &[&CALL_STATS, &DISK_STATS, &DISTRIBUTION, &TOP_CALLS, &CALLS],
    sections,
    needs: "syscall",
};

const COUNT: Column = Column("Count", "number", Some("operations"));
const MIN: Column = Column("Minimum", "duration", None);
const AVG: Column = Column("Average", "duration", None);
const MAX: Column = Column("Maximum", "duration", None);
const STDEV: Column = Column("Standard deviation", "duration", None);

static CALL_STATS: TableClass = TableClass {
    name: "syscall-latency-stats",
    title: "Syscalls latency statistics",
    columns: &[Column("Type", "string", None), COUNT, MIN, AVG, MAX, STDEV],
};

static DISK_STATS: TableClass = TableClass {
    name: "disk-latency-stats",
    title: "Disk latency statistics",
    columns: &[Column("Name", "disk", None), COUNT, MIN, AVG, MAX, STDEV],
};

static DISTRIBUTION: TableClass = TableClass {
    name: "freq",
    title: "I/O request latency distribution",
    columns: &[
        Column("From", "duration", None),
        Column("To", "duration", None),
        Column("Count", "number", Some("requests")),
    ],
};

const CALL: &[Column] = &[
    Column("Begin and end", "time-range", None),
    Column("Cut by the range", "bool", None),
    Column("Duration", "duration", None),
    Column("System call", "syscall", None),
    Column("Size", "size", None),
    Column("Process", "process", None),
    Column("Path", "path", None),
    Column("Descriptor", "fd", None),
];

static TOP_CALLS: TableClass = TableClass {
    name: "top-syscall",
    title: "Top system call latencies",
    columns: CALL,
};

static CALLS: TableClass = TableClass {
    name: "log",
    title: "I/O operations log",
    columns: CALL,
};

/// Classes of system calls, as both programs name them.
const CLASSES: [(&str, &str); 4] = [
    ("open", "Open"),
    ("read", "Read"),
    ("write", "Write"),
    ("sync", "Sync"),
];

fn sections(asking: &Asking<'_>) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    if asking.wanted.stats {
        sections.push(asking.section(&CALL_STATS, None, call_stats(asking)?, stats_text));
        sections.push(asking.section(&DISK_STATS, None, disk_stats(asking)?, stats_text));
    }
    if asking.wanted.top {
        for (op, _) in CLASSES {
            let answer = asking.ask(Kind::Io, Verb::Top, |question| {
                of_class(question, asking, op);
                question.limit = Some(asking.args.limit);
            })?;
            let rows = rows(&answer, "top_").iter().map(call).collect();
            sections.push(asking.section(&TOP_CALLS, Some(op.into()), rows, calls_text));
        }
    }
    if asking.wanted.freq {
        for (op, _) in CLASSES {
            let answer = asking.ask(Kind::Io, Verb::Hist, |question| {
                of_class(question, asking, op);
                question.bins = bins(asking);
            })?;
            let rows = distribution(&rows(&answer, "hist"));
            sections.push(asking.section(&DISTRIBUTION, Some(op.into()), rows, text::distribution));
        }
    }
    if asking.wanted.log {
        let answer = asking.ask(Kind::Io, Verb::Log, |question| {
            let ops = ["open", "close", "read", "write", "sync"];
            question.filter.ops = ops.map(String::from).to_vec();
            sizes(question, asking);
        })?;
        let rows = rows(&answer, "log").iter().map(call).collect();
        sections.push(asking.section(&CALLS, None, rows, calls_text));
    }
    Ok(sections)
}

fn bins(asking: &Asking<'_>) -> Bins {
    Bins::Linear {
        count: usize::from(asking.args.freq_resolution),
        uniform: asking.args.freq_uniform,
    }
}

/// All operations of a class as one group.
fn of_class(question: &mut Question, asking: &Asking<'_>, op: &str) {
    question.filter.ops = vec![op.into()];
    question.by = vec!["none".into()];
    sizes(question, asking);
}

fn sizes(question: &mut Question, asking: &Asking<'_>) {
    question.filter.size_min = asking.args.minsize.map(|bytes| bytes.ceil() as i64);
    question.filter.size_max = asking.args.maxsize.map(|bytes| bytes.floor() as i64);
}

fn call_stats(asking: &Asking<'_>) -> Result<Vec<Vec<Cell>>, Failure> {
    let mut found = Vec::new();
    for (op, title) in CLASSES {
        let answer = asking.ask(Kind::Io, Verb::Stats, |question| {
            of_class(question, asking, op);
        })?;
        for row in rows(&answer, "stats") {
            found.push(stats(Cell::Text(title.into()), &row));
        }
    }
    Ok(found)
}

fn disk_stats(asking: &Asking<'_>) -> Result<Vec<Vec<Cell>>, Failure> {
    let answer = asking.ask(Kind::Block, Verb::Stats, |question| {
        question.by = vec!["dev".into(), "part".into()];
        question.filter.comms.clear();
        question.filter.tids.clear();
    })?;
    let disk = |row: &Row<'_>| {
        let name = row.text("part").or(row.text("dev")).unwrap_or("?");
        stats(Cell::Disk(name.into()), row)
    };
    Ok(rows(&answer, "stats").iter().map(disk).collect())
}

fn stats(name: Cell, row: &Row<'_>) -> Vec<Cell> {
    let known = row.int("count").unwrap_or(0) - row.int("unfinished").unwrap_or(0);
    vec![
        name,
        Cell::Number(known),
        Cell::duration(row.float("min_ns")),
        Cell::duration(row.float("avg_ns")),
        Cell::duration(row.float("max_ns")),
        Cell::duration(row.float("stdev_ns")),
    ]
}

/// A row of `top` or `log`.
fn call(row: &Row<'_>) -> Vec<Cell> {
    let begin = row.int("ts_ns").unwrap_or(0);
    let end = row.int("ts_end_ns").unwrap_or(begin);
    let process = Cell::Process {
        name: row.text("comm").map(String::from),
        pid: None,
        tid: row.int("tid"),
    };
    vec![
        Cell::Range(begin, end),
        Cell::Bool(row.is_cut()),
        Cell::duration(row.float("dur_ns")),
        Cell::Syscall(row.text("name").unwrap_or("?").into()),
        row.int("bytes").map_or(Cell::Empty, Cell::Size),
        process,
        row.text("path")
            .map_or(Cell::Unknown, |path| Cell::Path(path.into())),
        row.int("fd").map_or(Cell::Unknown, Cell::Fd),
    ]
}

/// Bins of a histogram.
pub(super) fn distribution(rows: &[Row<'_>]) -> Vec<Vec<Cell>> {
    let bin = |row: &Row<'_>| {
        Some(vec![
            Cell::Duration(row.float("from_ns")?),
            Cell::Duration(row.float("to_ns")?),
            Cell::Number(row.int("count")?),
        ])
    };
    rows.iter().filter_map(bin).collect()
}

fn stats_text(table: &Table, _: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let title = table.class.title;
    let name = if table.class.name == "disk-latency-stats" {
        "Name"
    } else {
        "Type"
    };
    let mut text = format!(
        "\n{title} (usec):\n{name:<20}{:>9}{:>15}{:>15}{:>15}{:>15}\n{}\n",
        "Count",
        "Min",
        "Average",
        "Max",
        "Stdev",
        "-".repeat(89)
    );
    for row in &table.rows {
        let [name, count, min, avg, max, stdev] = row.as_slice() else {
            continue;
        };
        let _ = writeln!(
            text,
            "{:<20}{:>9}{:>15}{:>15}{:>15}{:>15}",
            text::plain(name),
            text::number(count),
            text::us(min),
            text::us(avg),
            text::us(max),
            text::us(stdev)
        );
    }
    text
}

fn calls_text(table: &Table, style: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let title = table.class.title;
    let subtitle = table
        .subtitle
        .as_deref()
        .map_or(String::new(), |op| format!(" {op}"));
    let mut text = format!(
        "\n{title}{subtitle} (usec)\n{:<20} {:<20} {:<16} {:<23} {:>5}  {:<24} {:<8} {:<14}\n",
        "Begin", "End", "Name", "Duration (usec)", "Size", "Proc", "PID", "Filename"
    );
    let mut any_cut = false;
    for row in &table.rows {
        let [
            Cell::Range(begin, end),
            Cell::Bool(cut),
            duration,
            name,
            size,
            process,
            path,
            fd,
        ] = row.as_slice()
        else {
            continue;
        };
        any_cut |= cut;
        let mark = if *cut { "*" } else { " " };
        let (comm, tid) = match process {
            Cell::Process { name, tid, .. } => (name.as_deref().unwrap_or("?"), *tid),
            _ => ("?", None),
        };
        let file = match (path, fd) {
            (Cell::Path(_), Cell::Fd(fd)) => format!("{} (fd={fd})", text::plain(path)),
            (Cell::Path(_), _) => text::plain(path),
            (_, Cell::Fd(fd)) => format!("unknown (fd={fd})"),
            _ => "unknown (origin not found)".into(),
        };
        let _ = writeln!(
            text,
            "{:<40}  {:<16} {:>16} {:>12}  {:<24} {:<8} {file}",
            format!("[{}, {}]{mark}", style.time(*begin), style.time(*end)),
            text::plain(name),
            format!("{}{mark}", text::us(duration)),
            text::size(size),
            crate::output::shown(comm, false),
            tid.map_or_else(|| "?".into(), |tid| tid.to_string()),
        );
    }
    if any_cut {
        text += "*: begun or ended outside of the range\n";
    }
    text
}
