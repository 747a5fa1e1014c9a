//! Unusable parts of the source: every answer reports them.

use std::collections::BTreeMap;

use whyslow_model::Symbols;
use whyslow_model::sort::IndexSort;
use whyslow_model::stat::Severity;
use whyslow_model::tables::TraceStatRow;
use whyslow_store::{Tables, rows};

use crate::AnalysisError;

/// Maximum number of kinds that are listed by name.
const NAMED: usize = 3;

/// A sentence about what the importer could not read, if anything.
pub fn damage(tables: &dyn Tables) -> Result<Option<String>, AnalysisError> {
    let mut symbols = Symbols::new();
    let mut met: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows::<TraceStatRow>(tables, &mut symbols)? {
        let is_error = symbols.get(row.severity) == Severity::Error.name();
        if is_error && symbols.get(row.kind) == "anomaly" {
            *met.entry(symbols.get(row.name).to_owned()).or_default() += row.count;
        }
    }
    if met.is_empty() {
        return Ok(None);
    }
    let mut met: Vec<(String, i64)> = met.into_iter().collect();
    met.index_sort_by(|(name_a, a), (name_b, b)| b.cmp(a).then_with(|| name_a.cmp(name_b)));
    let mut named: Vec<String> = met
        .iter()
        .take(NAMED)
        .map(|(name, count)| format!("{count} × {name}"))
        .collect();
    if met.len() > NAMED {
        named.push(format!("{} more kinds", met.len() - NAMED));
    }
    Ok(Some(format!(
        "parts of the source are unusable: {} (see `whyslow info`)",
        named.join(", ")
    )))
}
