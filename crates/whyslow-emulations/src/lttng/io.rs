//! `lttng-iolatencystats`, `-top`, `-freq` and `lttng-iolog`.

use std::collections::HashMap;
use std::fmt::Write as _;

use whyslow_analysis::{Bins, Kind, Query, Verb};
use whyslow_base::failure::Failure;

use super::analysis::{Analysis, RangeQuery, Section, Wanted, run, tool, with_args};
use super::lami::{AVG, Cell, Column, MAX, MIN, STDEV, Table, TableClass};
use super::text::{self, Style};
use super::usage;
use crate::cells::{Row, rows, rows_of};
use crate::tool::Tool;

pub(crate) static USAGE: Tool = tool(
    "lttng-iousagetop",
    "lttng-iousagetop-mi",
    "Show I/O bytes by process, file, disk and interface",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::USAGE),
);

pub(crate) static STATS: Tool = tool(
    "lttng-iolatencystats",
    "lttng-iolatencystats-mi",
    "Show latency statistics of opens, reads, writes, syncs and disks",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::STATS),
);

pub(crate) static TOP: Tool = tool(
    "lttng-iolatencytop",
    "lttng-iolatencytop-mi",
    "Show the longest opens, reads, writes and syncs",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::TOP),
);

pub(crate) static FREQ: Tool = tool(
    "lttng-iolatencyfreq",
    "lttng-iolatencyfreq-mi",
    "Show latency distributions of opens, reads, writes, syncs and disks",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::FREQ),
);

pub(crate) static LOG: Tool = tool(
    "lttng-iolog",
    "lttng-iolog-mi",
    "Show opens, closes, reads, writes and syncs in time order",
    |command| with_args(command, &ANALYSIS),
    |call| run(call, &ANALYSIS, Wanted::LOG),
);

static ANALYSIS: Analysis = Analysis {
    title: "I/O latency",
    about: "Statistics, distributions, top lists and a log of I/O system calls and disks",
    tags: &["linux-kernel", "io", "syscall", "disk"],
    classes: &[
        &CALL_STATS,
        &DISK_STATS,
        &DISTRIBUTION,
        &TOP_CALLS,
        &CALLS,
        &usage::PROCESSES,
        &usage::FILES,
        &usage::BLOCK,
        &usage::SECTORS,
        &usage::REQUESTS,
        &usage::LATENCIES,
        &usage::INTERFACES,
    ],
    sections,
    summary: None,
    needs: "syscall",
    options: &[
        "procname",
        "tid",
        "limit",
        "min",
        "max",
        "minsize",
        "maxsize",
        "freq_resolution",
        "freq_uniform",
        "usage",
        "stats",
        "top",
        "freq",
        "log",
    ],
};

const COUNT: Column = Column("Count", "number", Some("operations"));

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
    Column("Time range", "time-range", None),
    Column("Out of range", "bool", None),
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

/// Classes of system calls, with the calls that the original tools assign to them. `whyslow io`
/// knows more calls, but figures must stay comparable with those of the original tools.
const CLASSES: [(&str, &str, &[&str]); 4] = [
    (
        "open",
        "Open",
        &[
            "open", "openat", "openat2", "creat", "socket", "dup", "dup2", "dup3",
        ],
    ),
    ("read", "Read", READS),
    ("write", "Write", WRITES),
    (
        "sync",
        "Sync",
        &["sync", "sync_file_range", "fsync", "fdatasync"],
    ),
];

const READS: &[&str] = &[
    "read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg",
];

const WRITES: &[&str] = &[
    "write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg",
];

/// Calls that transfer bytes.
pub(super) fn transfers() -> Vec<String> {
    let all = READS.iter().chain(WRITES);
    all.map(|name| String::from(*name)).collect()
}

fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    if ranged.wanted.usage {
        sections.extend(usage::sections(ranged)?);
    }
    if ranged.wanted.stats {
        sections.push(ranged.section(&CALL_STATS, None, call_stats(ranged)?, stats_text));
        sections.push(ranged.section(&DISK_STATS, None, disk_stats(ranged)?, stats_text));
    }
    if ranged.wanted.top {
        for (op, _, calls) in CLASSES {
            let answer = ranged.run(Kind::Io, Verb::Top, |query| {
                of_class(query, ranged, calls);
                query.limit = Some(ranged.args.limit);
            })?;
            let rows = rows(&answer, "top_").iter().map(call).collect();
            sections.push(ranged.section(&TOP_CALLS, Some(op.into()), rows, calls_text));
        }
    }
    if ranged.wanted.freq {
        for (op, _, calls) in CLASSES {
            let answer = ranged.run(Kind::Io, Verb::Hist, |query| {
                of_class(query, ranged, calls);
                query.bins = bins(ranged);
            })?;
            let rows = distribution(ranged, &rows(&answer, "hist"));
            sections.push(ranged.section(&DISTRIBUTION, Some(op.into()), rows, text::distribution));
        }
        let answer = ranged.run(Kind::Block, Verb::Hist, |query| {
            query.by = vec!["part".into(), "dev".into()];
            query.bins = bins(ranged);
            usage::of_disks(query);
        })?;
        for table in &answer.tables {
            let rows: Vec<Row<'_>> = rows_of(table).collect();
            // `vda1 vda`, or `no part vda`.
            let title = &table.title;
            let disk = title.strip_prefix("no part ").or(title.split(' ').next());
            let disk = disk.unwrap_or(title);
            let (name, rows) = (format!("disk: {disk}"), distribution(ranged, &rows));
            sections.push(ranged.section(&DISTRIBUTION, Some(name), rows, text::distribution));
        }
    }
    if ranged.wanted.log {
        let answer = ranged.run(Kind::Io, Verb::Log, |query| {
            let calls = CLASSES.iter().flat_map(|(.., calls)| *calls);
            let calls = calls.chain(&["close"]);
            query.filter.names = calls.map(|name| String::from(*name)).collect();
            sizes(query, ranged);
        })?;
        let rows = rows(&answer, "log").iter().map(call).collect();
        sections.push(ranged.section(&CALLS, None, rows, calls_text));
    }
    Ok(sections)
}

fn bins(ranged: &RangeQuery<'_>) -> Bins {
    Bins::Linear {
        count: usize::from(ranged.args.freq_resolution),
        uniform: ranged.args.freq_uniform,
    }
}

/// All operations of a class as one group.
fn of_class(query: &mut Query, ranged: &RangeQuery<'_>, calls: &[&str]) {
    query.filter.names = calls.iter().map(|name| String::from(*name)).collect();
    query.by = vec!["none".into()];
    sizes(query, ranged);
}

fn sizes(query: &mut Query, ranged: &RangeQuery<'_>) {
    query.filter.size_min = ranged.args.minsize.map(|bytes| bytes.ceil() as i64);
    query.filter.size_max = ranged.args.maxsize.map(|bytes| bytes.floor() as i64);
}

fn call_stats(ranged: &RangeQuery<'_>) -> Result<Vec<Vec<Cell>>, Failure> {
    let mut found = Vec::new();
    for (_, title, calls) in CLASSES {
        let answer = ranged.run(Kind::Io, Verb::Stats, |query| {
            of_class(query, ranged, calls);
        })?;
        let name = Cell::Text(title.into());
        let none = || {
            vec![
                name.clone(),
                Cell::Number(0),
                Cell::Unknown,
                Cell::Unknown,
                Cell::Unknown,
                Cell::Unknown,
            ]
        };
        let rows = rows(&answer, "stats");
        found.push(
            rows.first()
                .map_or_else(none, |row| stats(name.clone(), row, "")),
        );
    }
    Ok(found)
}

fn disk_stats(ranged: &RangeQuery<'_>) -> Result<Vec<Vec<Cell>>, Failure> {
    let answer = ranged.run(Kind::Block, Verb::Stats, |query| {
        query.by = vec!["dev".into(), "part".into()];
        usage::of_disks(query);
    })?;
    let disk = |row: &Row<'_>| stats(usage::disk(row), row, "device_");
    Ok(rows(&answer, "stats").iter().map(disk).collect())
}

fn stats(name: Cell, row: &Row<'_>, stage: &str) -> Vec<Cell> {
    let known = if stage.is_empty() {
        Some(row.int("count").unwrap_or(0) - row.int("unfinished").unwrap_or(0))
    } else {
        row.int(&format!("{stage}count"))
    };
    let duration = |what: &str| Cell::duration(row.float(&format!("{stage}{what}_ns")));
    vec![
        name,
        Cell::Number(known.unwrap_or(0)),
        duration("min"),
        duration("avg"),
        duration("max"),
        duration("stdev"),
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

/// Equal bins from the smallest to the largest value, as in the original tools: empty if these are
/// equal, and with fractional ns as bounds.
pub(super) fn distribution(ranged: &RangeQuery<'_>, rows: &[Row<'_>]) -> Vec<Vec<Cell>> {
    let edge = |row: Option<&Row<'_>>, column: &str| row.and_then(|row| row.int(column));
    let (Some(min), Some(max)) = (edge(rows.first(), "from_ns"), edge(rows.last(), "to_ns")) else {
        return Vec::new();
    };
    if min == max {
        return Vec::new();
    }
    let count = usize::from(ranged.args.freq_resolution);
    let bound = |place: usize| min as f64 + (max - min) as f64 * place as f64 / count as f64;
    let counts: HashMap<i64, i64> = rows
        .iter()
        .filter_map(|row| Some((row.int("from_ns")?, row.int("count")?)))
        .collect();
    let bin = |place: usize| {
        let (from, to) = (bound(place), bound(place + 1));
        // A bin narrower than a ns may contain no integer.
        let first = from.ceil();
        let is_empty = place + 1 < count && to.ceil() <= first;
        let found = counts.get(&(first as i64)).copied().unwrap_or(0);
        vec![
            Cell::Duration(from),
            Cell::Duration(to),
            Cell::Number(if is_empty { 0 } else { found }),
        ]
    };
    (0..count).map(bin).collect()
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
            whyslow_model::text::shown(comm, false),
            tid.map_or_else(|| "?".into(), |tid| tid.to_string()),
        );
    }
    if any_cut {
        text += "*: started or completed outside of the analysis range\n";
    }
    text
}
