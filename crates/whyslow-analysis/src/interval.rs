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
                "use an id as printed by `top` and `log`, such as `op:17`",
            )
        })?;
    let found = match near(tables, known, id)? {
        Some(found) => Some(found),
        None => find(tables, known, id, None)?.found,
    };
    let (begin, end) = found.ok_or_else(|| {
        AnalysisError::query(
            format!("no operation {id} in table `{table}`"),
            "use an id printed by `top` or `log` for this recording",
        )
    })?;
    let end = end.unwrap_or(tables.info().whole().end);
    // Windows are half-open, operations are closed: one that starts exactly when this one ends only
    // touches it because of the clock resolution and is left out; one of zero duration keeps its
    // instant.
    Ok((known.name, Window::new(begin, end.max(begin + 1))))
}

/// Start and end of an operation.
type Ends = (Ns, Option<Ns>);

/// Result of a probe.
#[derive(Default)]
struct Probe {
    /// The row before the probed time: id and start.
    before: Option<(i64, Ns)>,
    found: Option<Ends>,
}

/// Interpolation search for a row, assuming that ids ascend with time, as they do in most tables. A
/// few probes that read some pages each replace reading the whole table; small tables are read at
/// once.
fn near(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
) -> Result<Option<Ends>, AnalysisError> {
    const PROBES: usize = 6;
    const ROWS_MIN: u64 = 100_000;
    let info = tables.info();
    let (rows, whole) = (info.rows_of_whole(table.name), info.whole());
    if rows < ROWS_MIN {
        return Ok(None);
    }
    let (mut low, mut high) = ((0, whole.begin), (rows as i64, whole.end));
    for _ in 0..PROBES {
        if !(low.0..=high.0).contains(&id) || low.0 == high.0 {
            break;
        }
        let share = (id - low.0) as f64 / (high.0 - low.0) as f64;
        let at = low.1 + ((high.1 - low.1) as f64 * share) as Ns;
        let probe = find(tables, table, id, Some(at))?;
        if probe.found.is_some() {
            return Ok(probe.found);
        }
        match probe.before {
            Some(seen) if seen.0 < id && seen > low => low = seen,
            Some(seen) if seen.0 > id && seen < high => high = seen,
            _ => break,
        }
    }
    Ok(None)
}

/// Searches for a row by id in all rows, or in the pages around a time.
fn find(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
    at: Option<Ns>,
) -> Result<Probe, AnalysisError> {
    let mut projection = Projection::new(table);
    let [ids, ts, ts_end] = ["id", "ts", "ts_end"].map(|name| projection.need(name));
    let mut probe = Probe::default();
    let window = at.map(|at| Window::new(at, at + 1));
    in_order(tables, &projection.scan(window), |batch| {
        let (ids, ts) = (ids.ints(batch)?, ts.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if ids.at(row) == id {
                probe.found = Some((ts.at(row), ts_end.ints(batch)?.get(row)));
                return Ok(ControlFlow::Break(()));
            }
            if at.is_some_and(|at| ts.at(row) <= at) {
                probe.before = Some((ids.at(row), ts.at(row)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(probe)
}
