//! `log`: rows in order of time, with all columns, handed on as they are read.

use std::ops::ControlFlow;

use whyslow_model::answer::AnswerTable;

use super::top::{push, row_table};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::Spec;
use crate::query::Filter;
use crate::rows::RowReader;

/// Hands on one table after another, each with the next rows in time that pass the filter.
pub(crate) fn stream(
    context: &Context<'_>,
    spec: &'static Spec,
    filter: &Filter,
    limit: usize,
    each: &mut dyn FnMut(AnswerTable) -> ControlFlow<()>,
) -> Result<(), AnalysisError> {
    let mut pass = context.pass_of(spec, &[], filter)?;
    let reader = RowReader::new(spec, context, &mut pass.projection);
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut left = limit;
    let mut found = false;
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            rows.truncate(left);
            if rows.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            left -= rows.len();
            found = true;
            let mut table = row_table(spec, "log", spec.rows);
            reader.read(batch, &rows, |shown| push(&mut table, shown))?;
            let next = each(table);
            Ok(if left == 0 {
                ControlFlow::Break(())
            } else {
                next
            })
        },
    )?;
    if !found {
        // Its columns are part of the answer that there are no rows.
        let _ = each(row_table(spec, "log", spec.rows));
    }
    Ok(())
}
