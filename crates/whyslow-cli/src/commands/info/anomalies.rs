//! Import anomalies: counts, meaning, and the first occurrence of each.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::tables::ImportLogRow;
use whyslow_model::{Symbols, stat};
use whyslow_store::{StoreError, Tables, rows};

use super::{ImportStat, of_kind};

/// Worst first.
pub(super) fn table(tables: &dyn Tables, counts: &[ImportStat]) -> Result<AnswerTable, StoreError> {
    let columns = vec![
        AnswerColumn::new("severity", "severity", Measure::Text),
        AnswerColumn::new("name", "anomaly", Measure::Text),
        AnswerColumn::new("count", "count", Measure::Count),
        AnswerColumn::new("meaning", "meaning", Measure::Text).priority(3),
        AnswerColumn::new("first", "first occurrence", Measure::Text).priority(4),
    ];
    let mut sums: BTreeMap<(u8, &str, &str), i64> = BTreeMap::new();
    for stat in of_kind(counts, "anomaly").filter(|stat| stat.count > 0) {
        *sums
            .entry((rank(&stat.severity), &stat.severity, &stat.name))
            .or_default() += stat.count;
    }
    let first = first(tables)?;
    let mut table = AnswerTable::new("anomalies", "import anomalies", columns);
    for ((rank, severity, name), count) in sums {
        if rank == 0 {
            table.outliers.push(table.rows.len());
        }
        let meaning = stat::ALL
            .iter()
            .find(|stat| stat.name.eq_ignore_ascii_case(name))
            .map(|stat| stat.doc);
        table.rows.push(vec![
            severity.into(),
            name.into(),
            count.into(),
            meaning.into(),
            first.get(name).cloned().into(),
        ]);
    }
    Ok(table)
}

/// The first occurrence of each anomaly, with its file and byte offset.
fn first(tables: &dyn Tables) -> Result<BTreeMap<String, String>, StoreError> {
    let mut symbols = Symbols::new();
    let mut first = BTreeMap::new();
    for row in rows::<ImportLogRow>(tables, &mut symbols)? {
        let source = row.source.map(|source| symbols.get(source));
        let place = match (source, row.byte_offset) {
            (Some(source), Some(byte)) => format!("{source} at byte {byte}"),
            (Some(source), None) => source.to_owned(),
            (None, _) => String::new(),
        };
        let text = symbols.get(row.text);
        let parts = [place.as_str(), text];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        first
            .entry(symbols.get(row.name).to_owned())
            .or_insert_with(|| parts.join(": "));
    }
    Ok(first)
}

fn rank(severity: &str) -> u8 {
    match severity {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    }
}
