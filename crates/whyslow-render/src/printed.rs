//! Cells of a table as text for people: text, Markdown and HTML print these.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::look::Look;
use crate::moments::TimeForm;
use crate::quantity::{Scale, grouped};
use whyslow_model::text::shown;

/// A column ready to print.
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

/// Columns named as iostat names them have its unit, which is 1024 bytes, in their name.
const IOSTAT_UNIT: &str = "kB/s";

/// Columns from this priority on are details: shown with `--wide`, or by name.
const DETAIL: u8 = 8;

/// Items of a list that people see; a file that every thread of a server has open would fill pages.
const LIST_SHOWN: usize = 8;

/// Below this a second thread costs more than it brings.
const ROWS_PER_THREAD: usize = 1_000;

/// What a cell without value shows.
pub(super) const NOTHING: &str = "-";

pub(super) fn columns(
    table: &AnswerTable,
    window: Option<(Ns, Ns)>,
    look: &Look,
) -> Vec<PrintedColumn> {
    let wanted: Vec<(usize, &AnswerColumn)> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(at, column)| {
            let is_given = || table.rows.iter().any(|row| *cell(row, *at) != Value::Null);
            is_wanted(column, look)
                && (!column.is_sparse || look.keep.contains(&column.name) || is_given())
        })
        .collect();
    let print = |(at, column): &(usize, &AnswerColumn)| {
        let values: Vec<&Value> = table.rows.iter().map(|row| cell(row, *at)).collect();
        print_column(column, &values, window, look)
    };
    if table.rows.len() < ROWS_PER_THREAD {
        wanted.iter().map(print).collect()
    } else {
        wanted.par_iter().map(print).collect()
    }
}

/// Details are for machine forms and those who ask for them.
fn is_wanted(column: &AnswerColumn, look: &Look) -> bool {
    look.details || column.priority < DETAIL || look.keep.contains(&column.name)
}

/// One value by itself, with its unit behind it: `437.7 ms`.
pub(super) fn single(column: &AnswerColumn, value: &Value, look: &Look) -> String {
    let printed = print_column(column, &[value], None, look);
    let text = printed.cells.into_iter().next().unwrap_or_default();
    if *value == Value::Null {
        return text;
    }
    match unit_of(column, scale_of(column, &[value], look)) {
        "" => text,
        "%" => format!("{text} %"),
        unit => format!("{text} {unit}"),
    }
}

/// Numbers that name something: nobody reads them as amounts, and they are typed back as they are.
fn is_name(column: &str) -> bool {
    matches!(
        column,
        "pid" | "tid" | "ppid" | "fd" | "fd2" | "cpu" | "sector" | "nr" | "major" | "minor"
    )
}

fn cell(row: &[Value], at: usize) -> &Value {
    row.get(at).unwrap_or(&Value::Null)
}

fn print_column(
    column: &AnswerColumn,
    values: &[&Value],
    window: Option<(Ns, Ns)>,
    look: &Look,
) -> PrintedColumn {
    let scale = scale_of(column, values, look);
    let unit = unit_of(column, scale);
    let header = header(&shown(&column.title, look.ascii), unit);
    let cells = match column.measure {
        Measure::Time => print_times(values, window, look),
        Measure::Text | Measure::Path | Measure::Id => {
            values.iter().map(|value| plain(value, look)).collect()
        }
        _ => {
            let group = look.group && !is_name(&column.name);
            values
                .iter()
                .map(|value| match number(value) {
                    Some(number) if is_level(&column.name) => level(number),
                    Some(number) => scale.print(number, group),
                    None => plain(value, look),
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

/// Levels of significance span hundreds of orders of magnitude.
fn is_level(column: &str) -> bool {
    column.ends_with("_q")
}

fn level(value: f64) -> String {
    if value >= 0.001 {
        format!("{value:.3}")
    } else if value > 0.0 {
        format!("{value:.1e}")
    } else {
        // Too little for the number that holds it.
        "<1e-307".into()
    }
}

fn print_times(values: &[&Value], window: Option<(Ns, Ns)>, look: &Look) -> Vec<String> {
    let times: Vec<Ns> = values
        .iter()
        .filter_map(|value| match value {
            Value::Int(ts) => Some(*ts),
            _ => None,
        })
        .collect();
    let form = TimeForm::fitting(&times, window, look);
    values
        .iter()
        .map(|value| match value {
            Value::Int(ts) => form.print(*ts, look),
            other => plain(other, look),
        })
        .collect()
}

/// Title with unit, unless the title says it already.
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

/// Unit that stands in the header; empty for what has none.
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

fn scale_of(column: &AnswerColumn, values: &[&Value], look: &Look) -> Scale {
    let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
    match column.measure {
        Measure::ByteRate if column.title.ends_with(IOSTAT_UNIT) => Scale::kibibytes(&numbers),
        Measure::Duration => Scale::duration(&numbers, look.unit),
        Measure::Bytes | Measure::ByteRate => Scale::bytes(&numbers, look.si),
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

fn plain(value: &Value, look: &Look) -> String {
    match value {
        Value::Null => NOTHING.into(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) if number.is_finite() => number.to_string(),
        Value::Float(_) => NOTHING.into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Text(text) => shown(text, look.ascii).into_owned(),
        Value::List(items) => {
            let count = if look.details {
                items.len()
            } else {
                LIST_SHOWN
            };
            let mut shown: Vec<String> = items
                .iter()
                .take(count)
                .map(|item| plain(item, look))
                .collect();
            if items.len() > count {
                shown.push(format!("and {} more", items.len() - count));
            }
            shown.join(", ")
        }
    }
}

/// A count with its digits in groups where the look wants them.
pub(super) fn count(number: i64, look: &Look) -> String {
    if look.group {
        grouped(&number.to_string())
    } else {
        number.to_string()
    }
}
