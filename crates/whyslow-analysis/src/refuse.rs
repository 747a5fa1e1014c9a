//! Rejects filters on values that the recording does not have.

use std::ops::ControlFlow;

use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::DeviceRow;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::query::DeviceRef;
use crate::scan::Projection;

/// Rejects unknown devices in queries without results: a misspelt device looks like an idle one.
pub(crate) fn unknown_devices(context: &Context<'_>) -> Result<(), AnalysisError> {
    let wanted = &context.query.filter.devices;
    if wanted.is_empty() {
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
    // If no device has a name, names cannot be checked.
    match wanted.iter().find(is_unknown) {
        Some(DeviceRef::Name(name)) if !known.is_empty() => {
            known.index_sort();
            Err(AnalysisError::query(
                format!("unknown device `{name}`"),
                format!("devices in this recording: {}", known.join(", ")),
            ))
        }
        _ => Ok(()),
    }
}
