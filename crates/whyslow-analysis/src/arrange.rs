//! Sorts and truncates the tables of an answer.

use std::cmp::Ordering;

use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::query::Sort;

/// Sorts the rows of a table by one of its columns, nulls last; the sort is stable. A table without
/// that column is unchanged.
pub(crate) fn sort(table: &mut AnswerTable, sort: &Sort) {
    let Some(place) = place_of_column(table, sort) else {
        return;
    };
    let mut order: Vec<usize> = (0..table.rows.len()).collect();
    order.index_sort_by(|a, b| {
        let (a, b) = (&table.rows[*a][place], &table.rows[*b][place]);
        match (a, b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            _ if sort.ascending => compare(a, b),
            _ => compare(b, a),
        }
    });
    let mut rows: Vec<Option<Vec<Value>>> = table.rows.drain(..).map(Some).collect();
    table.rows = order.iter().filter_map(|row| rows[*row].take()).collect();
    let mut place_of = vec![0; order.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(new, old)| place_of[*old] = new);
    table
        .outliers
        .iter_mut()
        .for_each(|row| *row = place_of[*row]);
    table.outliers.sort_unstable();
    table
        .cut
        .iter_mut()
        .for_each(|(row, _)| *row = place_of[*row]);
    table.cut.sort_unstable();
}

/// Fails if no table of the answer has the sort column.
pub(crate) fn check_sort(tables: &[AnswerTable], sort: Option<&Sort>) -> Result<(), AnalysisError> {
    let Some(sort) = sort else {
        return Ok(());
    };
    if tables.is_empty()
        || tables
            .iter()
            .any(|table| place_of_column(table, sort).is_some())
    {
        return Ok(());
    }
    let mut names = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    Err(AnalysisError::query(
        format!("cannot sort by `{}`: no such column", sort.column),
        format!("use one of {}", names.join(", ")),
    ))
}

fn place_of_column(table: &AnswerTable, sort: &Sort) -> Option<usize> {
    let wanted = sort.column.as_str();
    table
        .columns
        .iter()
        .position(|column| column.name == wanted || column.title == wanted)
}

/// Returns whether rows were removed.
pub(crate) fn truncate(table: &mut AnswerTable, limit: usize) -> bool {
    let more = table.rows.len() > limit;
    table.rows.truncate(limit);
    table.outliers.retain(|row| *row < limit);
    table.cut.retain(|(row, _)| *row < limit);
    more
}

/// Keeps at most `limit` rows of each run with the same first cell.
pub(crate) fn truncate_blocks(table: &mut AnswerTable, limit: usize) {
    let mut count = 0;
    let mut kept = Vec::with_capacity(table.rows.len());
    for (number, row) in table.rows.iter().enumerate() {
        let is_next = number > 0 && table.rows[number - 1].first() == row.first();
        count = if is_next { count + 1 } else { 1 };
        kept.push(count <= limit);
    }
    let mut place = 0;
    let places: Vec<Option<usize>> = kept
        .iter()
        .map(|kept| {
            place += usize::from(*kept);
            kept.then(|| place - 1)
        })
        .collect();
    let mut kept = kept.into_iter();
    table.rows.retain(|_| kept.next().unwrap_or(false));
    table.outliers = table
        .outliers
        .iter()
        .filter_map(|row| places[*row])
        .collect();
    let cut = table.cut.iter();
    table.cut = cut
        .filter_map(|(row, edge)| Some((places[*row]?, *edge)))
        .collect();
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Int(a), Value::Float(b)) => (*a as f64).total_cmp(b),
        (Value::Float(a), Value::Int(b)) => a.total_cmp(&(*b as f64)),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => a.len().cmp(&b.len()),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) => 4,
    }
}
