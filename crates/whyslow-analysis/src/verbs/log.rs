//! `log`: rows in chronological order, with all columns, passed on as they are read.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use whyslow_model::answer::AnswerTable;

use super::top::{push, row_table};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::query::Filter;
use crate::rows::RowReader;
use crate::scan::{ColumnRef, Ints, Texts};
use crate::spec::{Cell, Spec};

/// Passes on one table after another, each with the next rows in time that pass the filter.
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
        // The columns are also part of an answer without rows.
        let _ = each(row_table(spec, "log", spec.rows));
    }
    Ok(())
}

/// A row of `log` with only some columns, for callers that visit every row and keep none: building
/// the cells of an answer costs ten times as much as reading their input.
pub struct LogRow<'b> {
    names: &'b [&'static str],
    columns: &'b [LogColumn<'b>],
    row: u32,
}

#[derive(Clone, Copy)]
enum LogColumn<'b> {
    Ints(Ints<'b>),
    Texts(Texts<'b>),
}

impl<'b> LogRow<'b> {
    /// Value of an integer column; `None` for null, and for columns that were not projected or are
    /// texts.
    pub fn int(&self, column: &str) -> Option<i64> {
        match self.column(column)? {
            LogColumn::Ints(ints) => ints.get(self.row),
            LogColumn::Texts(_) => None,
        }
    }

    /// For an object, its path; `None` if that is unknown.
    pub fn text(&self, column: &str) -> Option<&'b str> {
        match self.column(column)? {
            LogColumn::Texts(texts) => texts.get(self.row),
            LogColumn::Ints(_) => None,
        }
    }

    fn column(&self, name: &str) -> Option<LogColumn<'b>> {
        // It is usually the same string, so comparing pointers avoids comparing characters.
        let mut names = self.names.iter();
        let place = names.position(|known| std::ptr::eq(*known, name));
        let place = place.or_else(|| self.names.iter().position(|known| *known == name));
        debug_assert!(place.is_some(), "column `{name}` was not requested");
        self.columns.get(place?).copied()
    }
}

enum Bound {
    Int(ColumnRef),
    Text(ColumnRef),
}

impl Bound {
    fn of<'b>(&self, batch: &'b RecordBatch) -> Result<LogColumn<'b>, AnalysisError> {
        Ok(match self {
            Bound::Int(column) => LogColumn::Ints(column.ints(batch)?),
            Bound::Text(column) => LogColumn::Texts(column.texts(batch)?),
        })
    }
}

/// Visits the rows that pass the filter, with these columns only.
pub(crate) fn each_row(
    context: &Context<'_>,
    spec: &'static Spec,
    columns: &[&'static str],
    each: &mut dyn FnMut(&LogRow<'_>) -> ControlFlow<()>,
) -> Result<(), AnalysisError> {
    let mut pass = context.pass_of(spec, &[], &context.query.filter)?;
    let mut bind = |name: &&str| {
        let field = spec.fields.iter().find(|field| field.name == *name);
        match field.map(|field| field.cell) {
            Some(Cell::Int(column) | Cell::Errno(column)) => {
                Ok(Bound::Int(pass.projection.need(column)))
            }
            Some(Cell::Text(column)) => Ok(Bound::Text(pass.projection.need(column))),
            Some(Cell::Object) => Ok(Bound::Text(pass.projection.need("path"))),
            _ => Err(AnalysisError::query(
                format!("rows of {} have no readable column `{name}`", spec.name),
                "use columns of numbers, names and paths",
            )),
        }
    };
    let bound: Vec<Bound> = columns.iter().map(&mut bind).collect::<Result<_, _>>()?;
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let scan = pass.projection.scan(pass.selected);
    in_order(context.tables, &scan, |batch| {
        pass.selector.select(&mut verdicts, batch, &mut rows)?;
        let read: Vec<LogColumn<'_>> = bound
            .iter()
            .map(|column| column.of(batch))
            .collect::<Result<_, _>>()?;
        for row in &rows {
            let row = LogRow {
                names: columns,
                columns: &read,
                row: *row,
            };
            if each(&row).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}
