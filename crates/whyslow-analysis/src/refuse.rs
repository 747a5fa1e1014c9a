//! Filters on what the recording does not have are refused, rather than finding nothing.

use std::ops::ControlFlow;

use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::DeviceRow;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::query::DeviceRef;
use crate::scan::Projection;

/// Refuses a device that the recording does not know, for questions that found nothing: a misspelt
/// one looks like an idle one.
pub(crate) fn unknown_devices(context: &Context<'_>) -> Result<(), AnalysisError> {
    let asked = &context.question.filter.devices;
    if asked.is_empty() {
        return Ok(());
    }
    let mut projection = Projection::new(DeviceRow::TABLE);
    let name = projection.need("name");
    let mut known: Vec<String> = Vec::new();
    in_order(context.tables, &projection.scan(None), |batch| {
        let names = name.texts(batch)?;
        let rows = 0..batch.num_rows() as u32;
        known.extend(rows.filter_map(|row| names.get(row)).map(str::to_owned));
        Ok(ControlFlow::Continue(()))
    })?;
    let is_unknown = |device: &&DeviceRef| match device {
        DeviceRef::Name(name) => {
            let name = name.strip_prefix("/dev/").unwrap_or(name);
            !known.iter().any(|known| known == name)
        }
        DeviceRef::Number { .. } => false,
    };
    // Where no device has a name, names tell nothing.
    match asked.iter().find(is_unknown) {
        Some(DeviceRef::Name(name)) if !known.is_empty() => {
            known.index_sort();
            Err(AnalysisError::query(
                format!("the recording knows no device `{name}`"),
                format!("there are {}", known.join(", ")),
            ))
        }
        _ => Ok(()),
    }
}
