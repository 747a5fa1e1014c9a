//! LAMI 1.0, the machine-readable format of lttng-analyses, which Trace Compass reads from external
//! analyses.
//!
//! A command describes its table classes once (`--metadata`); its results are tables of typed cells
//! that refer to their class.

use std::io::{self, Write};

use serde_json::{Value as Json, json};
use whyslow_model::Ns;

/// Version of the format.
pub(super) const VERSION: (u32, u32) = (1, 0);

/// A kind of table.
#[derive(Debug)]
pub(super) struct TableClass {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) columns: &'static [Column],
}

/// Title, class of the cells, and unit of numbers.
#[derive(Debug)]
pub(super) struct Column(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) Option<&'static str>,
);

pub(super) const MIN: Column = Column("Minimum", "duration", None);
pub(super) const AVG: Column = Column("Average", "duration", None);
pub(super) const MAX: Column = Column("Maximum", "duration", None);
pub(super) const STDEV: Column = Column("Standard deviation", "duration", None);

/// A table of results.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) class: &'static TableClass,
    /// Distinguishes it from other tables of its class.
    pub(super) subtitle: Option<String>,
    pub(super) range: (Ns, Ns),
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Empty,
    Unknown,
    Bool(bool),
    Number(i64),
    /// 0.5 is 50 %.
    Ratio(f64),
    Text(String),
    Time(Ns),
    /// ns
    Duration(f64),
    Size(i64),
    Range(Ns, Ns),
    Syscall(String),
    Process {
        name: Option<String>,
        pid: Option<i64>,
        tid: Option<i64>,
    },
    Path(String),
    Fd(i64),
    Irq {
        hard: bool,
        nr: i64,
        name: Option<String>,
    },
    Cpu(i64),
    Disk(String),
    Netif(String),
}

impl Cell {
    /// A duration that may be missing.
    pub(super) fn duration(ns: Option<f64>) -> Self {
        ns.map_or(Cell::Unknown, Cell::Duration)
    }

    /// A share that may be unknown.
    pub(super) fn ratio(ratio: Option<f64>) -> Self {
        ratio.map_or(Cell::Unknown, Cell::Ratio)
    }

    /// Numeric value for comparisons.
    pub(super) fn amount(&self) -> f64 {
        match self {
            Cell::Number(number) | Cell::Size(number) => *number as f64,
            Cell::Ratio(number) | Cell::Duration(number) => *number,
            _ => 0.0,
        }
    }

    fn json(&self) -> Json {
        match self {
            Cell::Empty => Json::Null,
            Cell::Unknown => json!({"class": "unknown"}),
            Cell::Bool(flag) => json!({"class": "bool", "value": flag}),
            Cell::Number(number) => json!({"class": "number", "value": number}),
            Cell::Ratio(ratio) => json!({"class": "ratio", "value": ratio}),
            Cell::Text(text) => json!({"class": "string", "value": text}),
            Cell::Time(ts) => json!({"class": "timestamp", "value": ts}),
            Cell::Duration(ns) => json!({"class": "duration", "value": ns}),
            Cell::Size(bytes) => json!({"class": "size", "value": bytes}),
            Cell::Range(begin, end) => range((*begin, *end)),
            Cell::Syscall(name) => json!({"class": "syscall", "name": name}),
            Cell::Process { name, pid, tid } => {
                let mut object = json!({"class": "process"});
                for (key, value) in [
                    ("name", name.clone().map(Json::from)),
                    ("pid", pid.map(Json::from)),
                    ("tid", tid.map(Json::from)),
                ] {
                    if let Some(value) = value {
                        object[key] = value;
                    }
                }
                object
            }
            Cell::Path(path) => json!({"class": "path", "path": path}),
            Cell::Fd(fd) => json!({"class": "fd", "fd": fd}),
            Cell::Irq { hard, nr, name } => {
                json!({"class": "irq", "hard": hard, "nr": nr, "name": name})
            }
            Cell::Cpu(cpu) => json!({"class": "cpu", "id": cpu}),
            Cell::Disk(name) => json!({"class": "disk", "name": name}),
            Cell::Netif(name) => json!({"class": "netif", "name": name}),
        }
    }
}

fn range((begin, end): (Ns, Ns)) -> Json {
    json!({
        "class": "time-range",
        "begin": {"class": "timestamp", "value": begin},
        "end": {"class": "timestamp", "value": end},
    })
}

/// Output of `--metadata`.
pub(super) fn metadata(title: &str, about: &str, tags: &[&str], classes: &[&TableClass]) -> Json {
    let classes = classes.iter().map(|class| {
        let columns = class.columns.iter().map(|Column(title, cells, unit)| {
            let mut column = json!({"title": title, "class": cells});
            if let Some(unit) = unit {
                column["unit"] = (*unit).into();
            }
            column
        });
        let columns: Vec<Json> = columns.collect();
        let class_of = json!({"title": class.title, "column-descriptions": columns});
        (class.name.to_owned(), class_of)
    });
    let part = |text: &str| text.parse::<u32>().unwrap_or(0);
    json!({
        "mi-version": {"major": VERSION.0, "minor": VERSION.1},
        "version": {
            "major": part(env!("CARGO_PKG_VERSION_MAJOR")),
            "minor": part(env!("CARGO_PKG_VERSION_MINOR")),
            "patch": part(env!("CARGO_PKG_VERSION_PATCH")),
            "extra": "",
        },
        "title": title,
        "description": about,
        "authors": ["whyslow"],
        "url": "",
        "tags": tags,
        "table-classes": Json::Object(classes.collect()),
    })
}

/// The rows of all tables named `total`, preceded by their ranges.
pub(super) fn summary(class: &'static TableClass, tables: &[Table]) -> Table {
    let totals = tables.iter().filter(|table| table.class.name == "total");
    let rows = totals.flat_map(|table| {
        let (begin, end) = table.range;
        let with_range = move |row: &Vec<Cell>| {
            let mut cells = vec![Cell::Range(begin, end)];
            cells.extend_from_slice(row);
            cells
        };
        table.rows.iter().map(with_range)
    });
    let ranges = tables.iter().map(|table| table.range);
    Table {
        class,
        subtitle: None,
        range: ranges
            .reduce(|(begin, _), (_, end)| (begin, end))
            .unwrap_or((0, 0)),
        rows: rows.collect(),
    }
}

/// Writes the results row by row: as a single value they would take many times the memory of the
/// tables.
pub(super) fn write_results<'t>(
    tables: impl IntoIterator<Item = &'t Table>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{{\"results\":[")?;
    for (number, table) in tables.into_iter().enumerate() {
        let class = match &table.subtitle {
            None => table.class.name.into(),
            Some(subtitle) => json!({
                "inherit": table.class.name,
                "title": format!("{} [{subtitle}]", table.class.title),
            }),
        };
        let comma = if number > 0 { "," } else { "" };
        let range = range(table.range);
        write!(
            out,
            "{comma}{{\"class\":{class},\"time-range\":{range},\"data\":["
        )?;
        for (number, row) in table.rows.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let row: Vec<Json> = row.iter().map(Cell::json).collect();
            write!(out, "{comma}{}", Json::from(row))?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}

/// Output of a command that fails.
pub(super) fn error(message: &str) -> Json {
    json!({"error-message": message})
}
