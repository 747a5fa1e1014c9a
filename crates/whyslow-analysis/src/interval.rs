//! The interval of an operation given by id.

use std::ops::ControlFlow;

use whyslow_model::{Ns, Shape, Table, Window, tables};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// Table and interval of an operation given by id.
pub fn interval_of(
    tables: &dyn Tables,
    table: &str,
    id: i64,
) -> Result<(&'static str, Window), AnalysisError> {
    let known = tables::by_name(table)
        .filter(|table| table.shape == Shape::Interval)
        .ok_or_else(|| {
            AnalysisError::query(
                format!("`{table}` is not a table of operations"),
                "give the id as an answer prints it, such as `op:17`",
            )
        })?;
    let found = match near(tables, known, id)? {
        Some(found) => Some(found),
        None => find(tables, known, id, None)?.found,
    };
    let (begin, end) = found.ok_or_else(|| {
        AnalysisError::query(
            format!("the recording has no operation {id} in table `{table}`"),
            "ids are those of this recording's `top` and `log`",
        )
    })?;
    let end = end.unwrap_or(tables.info().whole().end);
    // A window is open at its end, an operation is not: one that begins as this one ends touches it
    // only by the clock's resolution and is left out; one of no length keeps its moment.
    Ok((known.name, Window::new(begin, end.max(begin + 1))))
}

/// Begin and end of an operation.
type Ends = (Ns, Option<Ns>);

/// What a look at some rows found.
#[derive(Default)]
struct Looked {
    /// The row before the moment looked at: id and begin.
    before: Option<(i64, Ns)>,
    found: Option<Ends>,
}

/// Looks for a row where it is if ids ascend with time, as they do in most tables: between two moments
/// whose ids are known, as far from each as its own id from theirs. A few looks at some pages each
/// take the place of reading the whole table; none if that is small.
fn near(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
) -> Result<Option<Ends>, AnalysisError> {
    const LOOKS: usize = 6;
    const ROWS_MIN: u64 = 100_000;
    let info = tables.info();
    let (rows, whole) = (info.rows_of_whole(table.name), info.whole());
    if rows < ROWS_MIN {
        return Ok(None);
    }
    let (mut low, mut high) = ((0, whole.begin), (rows as i64, whole.end));
    for _ in 0..LOOKS {
        if !(low.0..=high.0).contains(&id) || low.0 == high.0 {
            break;
        }
        let share = (id - low.0) as f64 / (high.0 - low.0) as f64;
        let at = low.1 + ((high.1 - low.1) as f64 * share) as Ns;
        let looked = find(tables, table, id, Some(at))?;
        if looked.found.is_some() {
            return Ok(looked.found);
        }
        match looked.before {
            Some(seen) if seen.0 < id && seen > low => low = seen,
            Some(seen) if seen.0 > id && seen < high => high = seen,
            _ => break,
        }
    }
    Ok(None)
}

/// Looks for a row by its id among all, or in the pages that have some of a moment.
fn find(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
    at: Option<Ns>,
) -> Result<Looked, AnalysisError> {
    let mut projection = Projection::new(table);
    let [ids, ts, ts_end] = ["id", "ts", "ts_end"].map(|name| projection.need(name));
    let mut looked = Looked::default();
    let window = at.map(|at| Window::new(at, at + 1));
    in_order(tables, &projection.scan(window), |batch| {
        let (ids, ts) = (ids.ints(batch)?, ts.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if ids.at(row) == id {
                looked.found = Some((ts.at(row), ts_end.ints(batch)?.get(row)));
                return Ok(ControlFlow::Break(()));
            }
            if at.is_some_and(|at| ts.at(row) <= at) {
                looked.before = Some((ids.at(row), ts.at(row)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(looked)
}
