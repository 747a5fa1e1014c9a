//! Iteration over rows of answers for exports.

use std::ops::ControlFlow;

use whyslow_analysis::{Filter, Kind, LogRow, Query, Verb, each_row};
use whyslow_model::Window;
use whyslow_model::answer::LossNote;
use whyslow_store::Tables;

use crate::ExportError;

/// Passes on the rows of a log, if the recording has any; returns the losses in the window.
pub(crate) fn each_logged(
    tables: &dyn Tables,
    (table, kind, window, filter): (&str, Kind, Option<Window>, &Filter),
    columns: &[&'static str],
    row: &mut dyn FnMut(&LogRow<'_>) -> ControlFlow<()>,
) -> Result<Option<Vec<LossNote>>, ExportError> {
    let info = tables.info().tables.get(table);
    if info.is_none_or(|table| table.rows == 0) {
        return Ok(None);
    }
    let query = Query {
        window,
        filter: filter.clone(),
        ..Query::new(kind, Verb::Log)
    };
    let answer = each_row(tables, &query, columns, row)?;
    Ok(Some(answer.losses))
}
