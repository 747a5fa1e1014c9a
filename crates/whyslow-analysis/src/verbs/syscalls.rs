//! `io syscalls`: statistics by system call, of all classes, with errors by errno.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use super::stats;
use crate::AnalysisError;
use crate::context::Context;
use crate::keys::{Key, KeyValue};
use crate::kinds::SYSCALLS;
use crate::pass::Count;
use crate::query::Filter;
use whyslow_model::errno;

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let mut table = stats::table(context, &SYSCALLS, "syscalls", "system calls", keys)?;
    let errors = errors(context, keys)?;
    let place = table
        .columns
        .iter()
        .position(|column| column.name == "errors")
        .map_or(table.columns.len(), |place| place + 1);
    let column = AnswerColumn::new("errnos", "errors by errno", Measure::Text).priority(3);
    table.columns.insert(place, column);
    let first = usize::from(context.interval.is_some());
    let cells: usize = keys.iter().map(|key| key.answer_columns().len()).sum();
    for row in &mut table.rows {
        let found = errors.get(&format!("{:?}", &row[..first + cells]));
        row.insert(place, Value::List(found.cloned().unwrap_or_default()));
    }
    Ok(table)
}

/// `ENOENT 12`, most frequent first, by the cells with the interval and the keys.
fn errors(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<BTreeMap<String, Vec<Value>>, AnalysisError> {
    let mut by = keys.to_vec();
    by.push(Key::Errno);
    let failed = Filter {
        errors_only: true,
        ..context.query.filter.clone()
    };
    let mut pass = context.pass_of(&SYSCALLS, &by, &failed)?;
    let interval = context.interval;
    if let Some(width) = interval {
        pass.group_by_time(context.span, width);
    }
    let mut counted: Vec<_> = pass.run(context.tables, &Count)?.into_iter().collect();
    counted.index_sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut errors: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (mut group, count) in counted {
        let time = interval.and_then(|_| group.pop());
        let Some((KeyValue::Int(number @ 1..), group)) = group.split_last() else {
            continue;
        };
        let values = keys.iter().zip(group);
        let mut cells = Vec::new();
        if let Some(KeyValue::Int(begin)) = time {
            cells.push(Value::Int(begin));
        }
        cells.extend(values.flat_map(|(key, value)| key.cells(value, &context.names)));
        let error = format!("{} {count}", errno::name(*number));
        errors
            .entry(format!("{cells:?}"))
            .or_default()
            .push(error.into());
    }
    Ok(errors)
}
