//! Adds mount points to tables of block devices.

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::AnalysisError;
use crate::context::Context;
use crate::volumes::Volumes;

/// Adds a column to a table that has one of devices.
pub(crate) fn add_column(
    context: &Context<'_>,
    table: &mut AnswerTable,
) -> Result<(), AnalysisError> {
    let Some(place) = table.columns.iter().position(|column| column.name == "dev") else {
        return Ok(());
    };
    let volumes = Volumes::read(context.tables)?;
    let column = AnswerColumn::new("mounted", "mounted at", Measure::Path);
    table.columns.push(column.priority(3));
    for row in &mut table.rows {
        let points = match &row[place] {
            Value::Text(name) => volumes.mount_points(name),
            _ => Vec::new(),
        };
        row.push(match points.as_slice() {
            [] => Value::Null,
            points => Value::List(points.iter().map(|point| (*point).into()).collect()),
        });
    }
    Ok(())
}
