//! Operations across lost events: start and end may belong to different ones.
//!
//! Statistics leave them out and report their number; lists show them with a mark. They still count
//! where only the end matters, such as in bytes by process.

use arrow_array::RecordBatch;
use whyslow_model::Table;
use whyslow_model::tables::CUT_UNCERTAIN;
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::context::{Context, Included};
use crate::pass::Count;
use crate::query::Verb;
use crate::scan::{ColumnRef, Projection, Texts, per_word};
use crate::spec::Spec;

/// Column with the mark, if a row of the table may have it.
#[derive(Debug, Clone, Copy)]
pub struct Uncertain(Option<ColumnRef>);

impl Uncertain {
    /// Adds the column to the projection if necessary.
    pub fn new(
        tables: &dyn Tables,
        table: &'static Table,
        projection: &mut Projection,
    ) -> Result<Self, AnalysisError> {
        let are_possible = are_possible(tables, table)?;
        Ok(Self(are_possible.then(|| projection.need("cut"))))
    }

    /// The marks of a batch.
    pub fn of(self, batch: &RecordBatch) -> Result<UncertainRows<'_>, AnalysisError> {
        let column = self.0.map(|column| column.texts(batch)).transpose()?;
        Ok(UncertainRows(column.map(|texts| {
            let words = per_word(&texts, |word| word == CUT_UNCERTAIN);
            (texts, words)
        })))
    }
}

/// Marks of the rows of a batch.
pub struct UncertainRows<'b>(Option<(Texts<'b>, Vec<bool>)>);

impl UncertainRows<'_> {
    /// Whether the row has the mark.
    #[inline]
    pub fn has(&self, row: u32) -> bool {
        let Some((texts, words)) = &self.0 else {
            return false;
        };
        texts.key(row).is_some_and(|word| words[word])
    }
}

/// Whether a row of the table may have the mark.
fn are_possible(tables: &dyn Tables, table: &'static Table) -> Result<bool, AnalysisError> {
    if table.column("cut").is_none() {
        return Ok(false);
    }
    let words = tables.words(table, "cut")?;
    Ok(words.is_none_or(|words| words.contains(CUT_UNCERTAIN)))
}

/// Whether the query leaves uncertain rows of this kind out.
pub(crate) fn are_left_out(context: &Context<'_>, spec: &Spec) -> Result<bool, AnalysisError> {
    let is_statistic = matches!(
        context.query.verb,
        Verb::Stats | Verb::Hist | Verb::Heat | Verb::Outliers | Verb::Differs | Verb::Syscalls
    );
    Ok(is_statistic && are_possible(context.tables, spec.table)?)
}

/// Notes how many rows of the query are uncertain, if any.
pub(crate) fn note(context: &Context<'_>, spec: &'static Spec) -> Result<(), AnalysisError> {
    if !are_possible(context.tables, spec.table)? {
        return Ok(());
    }
    let filter = &context.query.filter;
    let mut pass =
        context.pass_including(Included::UNCERTAIN, spec, &[], filter, context.selected())?;
    pass.selector.only_uncertain(&mut pass.projection);
    let counts = pass.run(context.tables, &Count)?;
    let count: u64 = counts.into_values().sum();
    if count > 0 {
        context.note(format!(
            "{count} {} left out of latencies and utilisation: events were lost between start and \
             end, which may not belong together (`log` marks them)",
            spec.rows
        ));
    }
    Ok(())
}
