//! `use`: one row per resource, combined from other views: utilisation, average amount of waiting
//! work, wait time, and errors.
//!
//! Waiting work is runnable threads for CPUs, and requests between submission and completion for
//! disks (including those being processed, as in iostat's aqu-sz). Data that a recording does not
//! have, such as the speed of an interface or the memory in use, is left empty. By interval, each
//! block of rows is the result for that interval as its window.

use whyslow_model::Window;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::devices::{self, Detail};
use super::{cpu, interfaces, stats};
use crate::AnalysisError;
use crate::context::Context;
use crate::kinds::{BLOCK, SCHED, SLICES};
use crate::query::{Filter, Query};
use crate::sweep::Parts;

/// Utilisation from which a resource counts as busy …
const BUSY: f64 = 0.9;
/// … and waiting work from which it counts as saturated.
const WAITED_FOR: f64 = 1.0;
/// Each interval is a separate query.
const INTERVALS_MAX: usize = 1000;

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    if context.query.filter != Filter::default() || !context.query.by.is_empty() {
        return Err(AnalysisError::query(
            "`use` covers whole resources and takes no filter and no --by",
            "use `whyslow cpu`, `whyslow block` or `whyslow net`",
        ));
    }
    let Some(width) = context.interval else {
        let mut table = of_window(context)?;
        context.finish(&mut table, context.limit(0));
        return Ok(table);
    };
    let parts = Parts {
        span: context.span,
        width,
    };
    if parts.count() > INTERVALS_MAX {
        return Err(AnalysisError::query(
            format!("more than {INTERVALS_MAX} intervals of `use`"),
            "use a longer interval, or a shorter window with -w",
        ));
    }
    let mut whole = AnswerTable::new("resources", "resources", Vec::new());
    for part in 0..parts.count() {
        let begin = parts.begin(part);
        let query = Query {
            window: Some(Window::new(begin, begin + parts.length(part))),
            interval: None,
            ..context.query.clone()
        };
        let of_part = Context::new(context.tables, &query)?;
        let table = of_window(&of_part)?;
        let first = whole.rows.len();
        let outliers = table.outliers.into_iter();
        whole.outliers.extend(outliers.map(|row| first + row));
        whole.columns = vec![AnswerColumn::new("ts_ns", "time", Measure::Time)];
        whole.columns.extend(table.columns);
        whole.rows.extend(table.rows.into_iter().map(|mut row| {
            row.insert(0, begin.into());
            row
        }));
        of_part
            .take_notes()
            .into_iter()
            .for_each(|note| context.note(note));
    }
    context.finish_blocks(&mut whole, context.limit(0));
    Ok(whole)
}

fn of_window(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let column = AnswerColumn::new;
    let columns = vec![
        column("resource", "resource", Measure::Text),
        column("util_ratio", "% used", Measure::Ratio),
        column("waiting", "waiting", Measure::Number),
        column("waiting_what", "waiting for", Measure::Text).priority(2),
        column("wait_p99_ns", "p99 wait", Measure::Duration).priority(1),
        column("errors", "errors", Measure::Count),
        column("bytes_per_s", "per s", Measure::ByteRate).priority(1),
    ];
    let mut table = AnswerTable::new("resources", "resources", columns);
    let has = |table: &str| context.has(table);
    let (has_cpus, has_disks) = (has(SLICES.table.name), has(BLOCK.table.name));
    let of_cpus = |context: &Context<'_>| {
        if has_cpus {
            cpus(context)
        } else {
            Ok(Vec::new())
        }
    };
    let of_others = |context: &Context<'_>| {
        let mut rows = if has_disks {
            disks(context)?
        } else {
            Vec::new()
        };
        rows.extend(networks(context)?);
        Ok(rows)
    };
    let (of_cpus, of_others) = context.both(of_cpus, of_others)?;
    table.rows.extend(of_cpus);
    table.rows.extend(of_others);
    for (number, row) in table.rows.iter().enumerate() {
        if let (Value::Float(used), Value::Float(waiting)) = (&row[1], &row[2])
            && *used >= BUSY
            && *waiting >= WAITED_FOR
        {
            table.outliers.push(number);
        }
    }
    context.note(
        "memory in use, interface speed and interface queues unavailable: not recorded".into(),
    );
    Ok(table)
}

/// All CPUs together, with the threads that waited for one, then each CPU.
fn cpus(context: &Context<'_>) -> Result<Vec<Vec<Value>>, AnalysisError> {
    let each = cpu::ratios(context)?;
    let ratios = each.iter().filter_map(|(_, ratio)| match ratio {
        Value::Float(ratio) => Some(*ratio),
        _ => None,
    });
    let ratios: Vec<f64> = ratios.collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    // Without wakeups, only waits after preemption are known, which are not representative.
    let (waiting, p99) = if context.has("wakeup") {
        let waits = stats::table(context, &SCHED, "waits", "", &[])?;
        let first = waits.rows.first();
        let waiting = first.and_then(|row| number(&waits, row, "window_ratio"));
        let p99 = first.map_or(Value::Null, |row| cell(&waits, row, "p99_ns"));
        (waiting.unwrap_or(0.0).into(), p99)
    } else {
        (Value::Null, Value::Null)
    };
    let mut rows = vec![vec![
        format!("{} CPUs", each.len()).into(),
        (!ratios.is_empty()).then_some(mean).into(),
        waiting,
        "threads".into(),
        p99,
        Value::Null,
        Value::Null,
    ]];
    if each.len() > 1 {
        rows.extend(each.into_iter().map(|(cpu, ratio)| {
            let mut shown = vec![Value::Null; 7];
            (shown[0], shown[1]) = (format!("CPU {cpu}").into(), ratio);
            shown
        }));
    }
    Ok(rows)
}

fn disks(context: &Context<'_>) -> Result<Vec<Vec<Value>>, AnalysisError> {
    let each = devices::table(context, Detail::Brief)?;
    let row = |row: &Vec<Value>| {
        let name = match cell(&each, row, "dev") {
            Value::Text(name) => name,
            _ => String::new(),
        };
        let rate = |column| number(&each, row, column).unwrap_or(0.0);
        vec![
            name.into(),
            cell(&each, row, "util_ratio"),
            cell(&each, row, "aqu_sz"),
            "requests".into(),
            cell(&each, row, "p99_ns"),
            cell(&each, row, "errors"),
            (rate("read_bytes_per_s") + rate("write_bytes_per_s")).into(),
        ]
    };
    Ok(each.rows.iter().map(row).collect())
}

fn networks(context: &Context<'_>) -> Result<Vec<Vec<Value>>, AnalysisError> {
    let Some(each) = interfaces::table(context)? else {
        return Ok(Vec::new());
    };
    let seconds = context.seconds();
    let row = |row: &Vec<Value>| {
        let bytes = |column| number(&each, row, column).unwrap_or(0.0);
        let bytes = bytes("received_bytes") + bytes("sent_bytes");
        let mut shown = vec![Value::Null; 7];
        shown[0] = cell(&each, row, "netif");
        shown[6] = (seconds > 0.0).then(|| bytes / seconds).into();
        shown
    };
    Ok(each.rows.iter().map(row).collect())
}

fn cell(table: &AnswerTable, row: &[Value], name: &str) -> Value {
    let place = table.columns.iter().position(|column| column.name == name);
    place
        .and_then(|place| row.get(place))
        .cloned()
        .unwrap_or(Value::Null)
}

fn number(table: &AnswerTable, row: &[Value], name: &str) -> Option<f64> {
    match cell(table, row, name) {
        Value::Int(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    }
}
