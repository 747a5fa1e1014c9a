//! The usage tables of the I/O commands (`lttng-iousagetop`): bytes by process, file, disk and
//! interface.

use whyslow_analysis::{Kind, Query, Verb};
use whyslow_base::failure::Failure;

use super::analysis::{Pids, RangeQuery, Section};
use super::lami::{Cell, Column, Table, TableClass};
use super::text::{self, Bar, Style};
use crate::cells::{Row, rows};

pub(super) static PROCESSES: TableClass = TableClass {
    name: "per-process-top",
    title: "Per-process I/O",
    columns: &[
        Column("Process", "process", None),
        Column("Total", "size", None),
        Column("Disk", "size", None),
        Column("Net", "size", None),
        Column("Unknown", "size", None),
    ],
};

pub(super) static FILES: TableClass = TableClass {
    name: "per-file-top",
    title: "Per-file I/O",
    columns: &[
        Column("Path", "path", None),
        Column("Size", "size", None),
        Column("Used by", "string", None),
    ],
};

pub(super) static BLOCK: TableClass = TableClass {
    name: "per-process-top-block",
    title: "Block I/O",
    columns: &[
        Column("Process", "process", None),
        Column("Size", "size", None),
    ],
};

pub(super) static SECTORS: TableClass = TableClass {
    name: "per-disk-top-sector",
    title: "Disk Requests Sector Count",
    columns: &[
        Column("Disk", "disk", None),
        Column("Sectors", "number", Some("sectors")),
    ],
};

pub(super) static REQUESTS: TableClass = TableClass {
    name: "per-disk-top-request",
    title: "Disk Request Count",
    columns: &[
        Column("Disk", "disk", None),
        Column("Requests", "number", Some("requests")),
    ],
};

pub(super) static LATENCIES: TableClass = TableClass {
    name: "per-disk-top-rps",
    title: "Disk Request Average Latency",
    columns: &[
        Column("Disk", "disk", None),
        Column("Average latency", "duration", None),
    ],
};

pub(super) static INTERFACES: TableClass = TableClass {
    name: "per-netif-top",
    title: "Network",
    columns: &[
        Column("Interface", "netif", None),
        Column("Size", "size", None),
    ],
};

const SECTOR: i64 = 512;

/// Subtitle in LAMI, word in column names, heading in text.
const DIRECTIONS: [(&str, &str, &str); 2] =
    [("read", "read", "Read"), ("written", "write", "Write")];

pub(super) fn sections(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    let pids = Pids::of(ranged)?;
    let of_calls = |key: &'static str| {
        move |query: &mut Query| {
            query.by = vec![key.into()];
            query.filter.names = super::io::transfers();
        }
    };
    let owners = ranged.run(Kind::Io, Verb::Usage, of_calls("thread"))?;
    let owners = rows(&owners, "usage");
    for (subtitle, word, _) in DIRECTIONS {
        let cells = |row: &Row<'_>| owner(row, word, &pids);
        let found = top(owners.iter().map(cells), ranged.args.limit);
        sections.push(ranged.section(&PROCESSES, Some(subtitle.into()), found, processes_text));
    }
    let files = ranged.run(Kind::Io, Verb::Usage, of_calls("file"))?;
    let files = rows(&files, "usage");
    for (subtitle, word, _) in DIRECTIONS {
        let cells = |row: &Row<'_>| file(row, word);
        let found = top(files.iter().map(cells), ranged.args.limit);
        sections.push(ranged.section(&FILES, Some(subtitle.into()), found, files_text));
    }
    for (subtitle, op) in [("read", "read"), ("written", "write")] {
        let requests = ranged.run(Kind::Block, Verb::Usage, |query| {
            by(&["thread"])(query);
            query.filter.ops = vec![op.into()];
        })?;
        let cells = |row: &Row<'_>| vec![pids.process(row), size(row.int("bytes"))];
        let found = rows(&requests, "usage");
        let found = top(found.iter().map(cells), ranged.args.limit);
        sections.push(ranged.section(&BLOCK, Some(subtitle.into()), found, block_text));
    }
    sections.extend(disks(ranged)?);
    sections.extend(interfaces(ranged)?);
    Ok(sections)
}

fn by(keys: &'static [&'static str]) -> impl Fn(&mut Query) {
    move |query| query.by = keys.iter().map(|key| String::from(*key)).collect()
}

fn size(bytes: Option<i64>) -> Cell {
    Cell::Size(bytes.unwrap_or(0))
}

fn owner(row: &Row<'_>, word: &str, pids: &Pids) -> Vec<Cell> {
    let of = |what: &str| row.int(&format!("{what}_{word}_bytes")).unwrap_or(0);
    let (disk, net, unknown) = (of("file"), of("net"), of("other") + of("unknown"));
    vec![
        pids.process(row),
        Cell::Size(disk + net + unknown),
        Cell::Size(disk),
        Cell::Size(net),
        Cell::Size(unknown),
    ]
}

fn file(row: &Row<'_>, word: &str) -> Vec<Cell> {
    vec![
        row.text("file")
            .map_or(Cell::Unknown, |path| Cell::Path(path.into())),
        size(row.int(&format!("{word}_bytes"))),
        Cell::Text(row.list("by").join(" ")),
    ]
}

/// The rows with the largest second cell, without rows of zero.
fn top(rows: impl Iterator<Item = Vec<Cell>>, limit: usize) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = rows.filter(|row| value(row) > 0.0).collect();
    rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
    if limit > 0 {
        rows.truncate(limit);
    }
    rows
}

fn value(row: &[Cell]) -> f64 {
    row.get(1).map_or(0.0, Cell::amount)
}

fn disks(ranged: &RangeQuery<'_>) -> Result<[Section; 3], Failure> {
    let answer = ranged.run(Kind::Block, Verb::Usage, |query| {
        by(&["dev", "part"])(query);
        of_disks(query);
    })?;
    let found = rows(&answer, "usage");
    let limit = ranged.args.limit;
    let table = |cell: fn(&Row<'_>) -> Cell| {
        let cells = |row: &Row<'_>| vec![disk(row), cell(row)];
        top(found.iter().map(cells), limit)
    };
    let sectors = table(|row| Cell::Number(row.int("bytes").unwrap_or(0) / SECTOR));
    let requests = table(|row| Cell::Number(row.int("device_count").unwrap_or(0)));
    let latencies = table(|row| Cell::duration(row.float("device_avg_ns")));
    Ok([
        ranged.section(&SECTORS, None, sectors, disks_text),
        ranged.section(&REQUESTS, None, requests, disks_text),
        ranged.section(&LATENCIES, None, latencies, disks_text),
    ])
}

/// Requests that transfer data: requests without sectors are commands. Filters by thread do not
/// apply, since the submitting thread may be a different one.
pub(super) fn of_disks(query: &mut Query) {
    let filter = &mut query.filter;
    filter.ops = ["read", "write", "discard"].map(String::from).to_vec();
    filter.comms.clear();
    filter.tids.clear();
    // The latency of a disk is the time in the device.
    filter.stage = Some("device".into());
}

pub(super) fn disk(row: &Row<'_>) -> Cell {
    let name = row.text("part").or(row.text("dev")).unwrap_or("?");
    Cell::Disk(name.into())
}

fn interfaces(ranged: &RangeQuery<'_>) -> Result<Vec<Section>, Failure> {
    let answer = ranged.run(Kind::Net, Verb::Usage, |query| {
        query.filter.comms.clear();
        query.filter.tids.clear();
        query.filter.dur_min = None;
        query.filter.dur_max = None;
    })?;
    let found = rows(&answer, "usage");
    let table = |column: &str| {
        // Packets may be dropped before they have an interface.
        let cells = |row: &Row<'_>| {
            let name = row.text("netif")?;
            Some(vec![Cell::Netif(name.into()), size(row.int(column))])
        };
        let mut rows: Vec<Vec<Cell>> = found.iter().filter_map(cells).collect();
        rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
        rows
    };
    let received = table("received_bytes");
    let sent = table("sent_bytes");
    let section = |subtitle: &str, rows| {
        ranged.section(&INTERFACES, Some(subtitle.into()), rows, interfaces_text)
    };
    Ok(vec![section("received", received), section("sent", sent)])
}

/// `Read` or `Write`.
fn heading(table: &Table) -> &'static str {
    let subtitle = table.subtitle.as_deref();
    let mut directions = DIRECTIONS.iter();
    directions
        .find(|(word, ..)| Some(*word) == subtitle)
        .map_or("", |(.., heading)| heading)
}

fn processes_text(table: &Table, _: &Style) -> String {
    let bar = |row: &Vec<Cell>| {
        let [process, total, parts @ ..] = row.as_slice() else {
            return Bar::default();
        };
        let parts: Vec<String> = parts
            .iter()
            .map(|part| format!("{:>11}", text::size(part)))
            .collect();
        Bar {
            amount: total.amount(),
            value: text::size(total),
            label: format!("{:<25}{}", text::owner(process), parts.concat()),
        }
    };
    text::graph(
        &format!("{} {}", table.class.title, heading(table)),
        "Process                         Disk        Net    Unknown",
        table.rows.iter().map(bar),
    )
}

fn files_text(table: &Table, _: &Style) -> String {
    let title = format!("{} {}", table.class.title, heading(table));
    text::graph(&title, "Path", sizes(table, text::plain))
}

fn block_text(table: &Table, _: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let title = format!("{} {}", table.class.title, heading(table));
    text::graph(&title, "Process", sizes(table, text::owner))
}

fn sizes(table: &Table, label: fn(&Cell) -> String) -> impl Iterator<Item = Bar> {
    let rows = table.rows.iter();
    rows.filter_map(move |row| {
        let [name, size, ..] = row.as_slice() else {
            return None;
        };
        Some(Bar {
            amount: size.amount(),
            value: text::size(size),
            label: label(name),
        })
    })
}

fn disks_text(table: &Table, _: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let unit = table.class.columns.get(1).and_then(|column| column.2);
    let bars = table.rows.iter().filter_map(|row| {
        let [disk, amount] = row.as_slice() else {
            return None;
        };
        let value = match amount {
            Cell::Duration(ns) => format!("{:.2} ms", ns / 1e6),
            amount => format!("{} {}", text::number(amount), unit.unwrap_or("")),
        };
        Some(Bar {
            amount: amount.amount(),
            value,
            label: text::plain(disk),
        })
    });
    text::graph(table.class.title, "Disk", bars)
}

fn interfaces_text(table: &Table, _: &Style) -> String {
    let received = table.subtitle.as_deref() == Some("received");
    let direction = if received { "Received" } else { "Sent" };
    let title = format!("{} {direction} Bytes", table.class.title);
    text::graph(&title, "Interface", sizes(table, text::plain))
}
