//! Table cells as text for people, used by the text, Markdown and HTML formats.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use whyslow_base::args::UnitChoice;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::text::{long_duration, shown};

use crate::quantity::{Scale, grouped};
use crate::style::TextStyle;
use crate::timestamps::TimeForm;

/// A column ready for printing.
#[derive(Debug, Clone)]
pub(super) struct PrintedColumn {
    pub(super) name: String,
    /// Title with unit: `p99 ms`.
    pub(super) header: String,
    pub(super) cells: Vec<String>,
    pub(super) right: bool,
    /// May be shortened in the middle.
    pub(super) is_path: bool,
    pub(super) priority: u8,
}

/// Columns with names from iostat have its unit, 1024 bytes, in their name.
const IOSTAT_UNIT: &str = "kB/s";

/// Columns with at least this priority number are details: shown with `--wide`, or by name.
const DETAIL: u8 = 8;

/// List items that are shown; a file that every thread of a server has open would fill pages.
const LIST_SHOWN: usize = 8;

/// Below this number of rows, a second thread costs more than it saves.
const ROWS_PER_THREAD: usize = 1_000;

/// Text of an empty cell.
pub(super) const NOTHING: &str = "-";

pub(super) fn columns(
    table: &AnswerTable,
    window: Option<(Ns, Ns)>,
    style: &TextStyle,
) -> Vec<PrintedColumn> {
    let wanted: Vec<(usize, &AnswerColumn)> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(at, column)| {
            let is_given = || table.rows.iter().any(|row| *cell(row, *at) != Value::Null);
            is_wanted(column, style)
                && (!column.is_sparse || style.keep.contains(&column.name) || is_given())
        })
        .collect();
    let print = |(at, column): &(usize, &AnswerColumn)| {
        let values: Vec<&Value> = table.rows.iter().map(|row| cell(row, *at)).collect();
        print_column(column, &values, window, style)
    };
    if table.rows.len() < ROWS_PER_THREAD {
        wanted.iter().map(print).collect()
    } else {
        wanted.par_iter().map(print).collect()
    }
}

/// Details are for machine-readable formats, and shown on request.
fn is_wanted(column: &AnswerColumn, style: &TextStyle) -> bool {
    style.details || column.priority < DETAIL || style.keep.contains(&column.name)
}

/// One value with its unit: `437.7 ms`, `2 d 9 h 33 min`.
pub(super) fn single(column: &AnswerColumn, value: &Value, style: &TextStyle) -> String {
    if let (Measure::Duration, UnitChoice::Auto, Some(ns)) =
        (column.measure, style.unit, number(value))
        && let Some(text) = long_duration(ns as Ns)
    {
        return text;
    }
    let printed = print_column(column, &[value], None, style);
    let text = printed.cells.into_iter().next().unwrap_or_default();
    if *value == Value::Null {
        return text;
    }
    match unit_of(column, scale_of(column, &[value], style)) {
        "" => text,
        "%" => format!("{text} %"),
        unit => format!("{text} {unit}"),
    }
}

/// Numbers that are identifiers, not amounts: printed without digit grouping, to be pasted back.
fn is_name(column: &str) -> bool {
    // `waker_tid`, `sender_pid`, `mount_ns`: the last word decides.
    let last = column.rsplit('_').next().unwrap_or(column);
    matches!(
        last,
        "pid" | "tid" | "ppid" | "upid" | "utid" | "uid" | "gid" | "id" | "fd" | "fd2" | "cpu"
            | "node" | "sector" | "offset" | "inode" | "nr" | "code" | "errno" | "major" | "minor"
            | "seq" | "port" | "ret" | "result" | "version"
    ) || matches!(column, "mount_ns" | "format")
        // Arguments of probes may be addresses or descriptors.
        || last
            .strip_prefix("arg")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn cell(row: &[Value], at: usize) -> &Value {
    row.get(at).unwrap_or(&Value::Null)
}

fn print_column(
    column: &AnswerColumn,
    values: &[&Value],
    window: Option<(Ns, Ns)>,
    style: &TextStyle,
) -> PrintedColumn {
    let scale = scale_of(column, values, style);
    let unit = unit_of(column, scale);
    let header = header(&shown(&column.title, style.ascii), unit);
    let cells = match column.measure {
        Measure::Time => print_times(values, window, style),
        Measure::Text | Measure::Path | Measure::Id => {
            values.iter().map(|value| plain(value, style)).collect()
        }
        _ => {
            let group = style.group && !is_name(&column.name);
            values
                .iter()
                .map(|value| match number(value) {
                    Some(number) if is_level(&column.name) => level(number),
                    Some(number) => scale.print(number, group),
                    None => plain(value, style),
                })
                .collect()
        }
    };
    PrintedColumn {
        name: column.name.clone(),
        header,
        cells,
        right: !matches!(
            column.measure,
            Measure::Text | Measure::Path | Measure::Id | Measure::Time
        ),
        is_path: column.measure == Measure::Path || column.is_long,
        priority: column.priority,
    }
}

/// Significance levels span hundreds of orders of magnitude.
fn is_level(column: &str) -> bool {
    column.ends_with("_q")
}

fn level(value: f64) -> String {
    if value >= 0.001 {
        format!("{value:.3}")
    } else if value > 0.0 {
        format!("{value:.1e}")
    } else {
        // Below the range of the number format.
        "<1e-307".into()
    }
}

fn print_times(values: &[&Value], window: Option<(Ns, Ns)>, style: &TextStyle) -> Vec<String> {
    let times: Vec<Ns> = values
        .iter()
        .filter_map(|value| match value {
            Value::Int(ts) => Some(*ts),
            _ => None,
        })
        .collect();
    let form = TimeForm::fitting(&times, window, style);
    values
        .iter()
        .map(|value| match value {
            Value::Int(ts) => form.print(*ts, style),
            other => plain(other, style),
        })
        .collect()
}

/// Title with unit, unless the title contains it.
fn header(title: &str, unit: &str) -> String {
    let title = if unit.ends_with("/s") {
        title.strip_suffix("per s").unwrap_or(title).trim_end()
    } else {
        title
    };
    let says_it = title.ends_with(unit)
        || (unit == "%" && title.contains('%'))
        || (unit.ends_with("/s") && title.ends_with("/s"));
    match (unit, title) {
        _ if says_it => title.to_owned(),
        (unit, "") => unit.to_owned(),
        (unit, title) => format!("{title} {unit}"),
    }
}

/// Unit for the header; empty if the column has none.
fn unit_of(column: &AnswerColumn, scale: Scale) -> &'static str {
    match column.measure {
        Measure::Duration | Measure::Bytes | Measure::Ratio => scale.unit.name,
        Measure::Rate => "/s",
        Measure::ByteRate => match scale.unit.name {
            "B" => "B/s",
            "KiB" => "KiB/s",
            "MiB" => "MiB/s",
            "GiB" => "GiB/s",
            "kB" => "kB/s",
            "MB" => "MB/s",
            "GB" => "GB/s",
            _ => "TB/s",
        },
        _ => "",
    }
}

fn scale_of(column: &AnswerColumn, values: &[&Value], style: &TextStyle) -> Scale {
    let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
    match column.measure {
        Measure::ByteRate if column.title.ends_with(IOSTAT_UNIT) => Scale::kibibytes(&numbers),
        Measure::Duration => Scale::duration(&numbers, style.unit),
        Measure::Bytes | Measure::ByteRate => Scale::bytes(&numbers, style.si),
        Measure::Ratio => Scale::ratio(&numbers),
        _ => Scale::plain(&numbers, numbers.iter().any(|number| number.fract() != 0.0)),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) if number.is_finite() => Some(*number),
        _ => None,
    }
}

fn plain(value: &Value, style: &TextStyle) -> String {
    match value {
        Value::Null => NOTHING.into(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) if number.is_finite() => number.to_string(),
        Value::Float(_) => NOTHING.into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Text(text) => shown(text, style.ascii).into_owned(),
        Value::List(items) => {
            let count = if style.details {
                items.len()
            } else {
                LIST_SHOWN
            };
            let mut shown: Vec<String> = items
                .iter()
                .take(count)
                .map(|item| plain(item, style))
                .collect();
            if items.len() > count {
                shown.push(format!("and {} more", items.len() - count));
            }
            shown.join(", ")
        }
    }
}

/// A count, with grouped digits if the style requires it.
pub(super) fn count(number: i64, style: &TextStyle) -> String {
    if style.group {
        grouped(&number.to_string())
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_no_separators() {
        let style = TextStyle {
            group: true,
            ..TextStyle::plain()
        };
        let check = |name: &str, want: &str| {
            let column = AnswerColumn::new(name, name, Measure::Count);
            let printed = print_column(&column, &[&Value::Int(31_517)], None, &style);
            assert_eq!(printed.cells, [want], "{name}");
        };
        for name in [
            "pid",
            "tid",
            "waker_tid",
            "sender_tid",
            "holder_tid",
            "group_id",
            "uid",
            "fd2",
            "mount_ns",
            "tcp_seq",
            "file_offset",
            "sector",
            "arg1",
            "arg12",
            "cpu",
        ] {
            check(name, "31517");
        }
        for name in [
            "count",
            "requests",
            "sectors",
            "received_packets",
            "pages",
            "arguments",
        ] {
            check(name, "31 517");
        }
    }

    #[test]
    fn a_single_long_duration_is_in_days_and_hours() {
        let column = AnswerColumn::new("total_ns", "total", Measure::Duration);
        let text = |ns: i64, unit| {
            let style = TextStyle {
                unit,
                ..TextStyle::plain()
            };
            single(&column, &Value::Int(ns), &style)
        };
        let long = 207_200_000_000_000;
        assert_eq!(text(long, UnitChoice::Auto), "2 d 9 h 33 min");
        assert_eq!(text(long, UnitChoice::S), "207200 s");
        assert_eq!(text(437_697_753, UnitChoice::Auto), "437.7 ms");
    }
}
