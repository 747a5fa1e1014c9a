//! Markers of `whyslow mark`, and the conditions that made the flight recorder save.

use whyslow_model::Symbols;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::tables::MarkerRow;
use whyslow_store::{StoreError, Tables, rows};

/// Name of these markers; user-space tracepoints have other names.
const NAME: &str = "mark";
/// Maximum number of markers listed.
const MARKS_MAX: usize = 100;

pub(super) fn table(tables: &dyn Tables) -> Result<AnswerTable, StoreError> {
    let columns = vec![
        AnswerColumn::new("ts_ns", "time", Measure::Time),
        AnswerColumn::new("text", "marker", Measure::Text),
    ];
    let mut table = AnswerTable::new("marks", "markers", columns);
    let mut symbols = Symbols::new();
    let mut marks = Vec::new();
    for row in rows::<MarkerRow>(tables, &mut symbols)? {
        if symbols.get(row.name) == NAME && marks.len() < MARKS_MAX {
            marks.push((row.ts, row.text));
        }
    }
    let row = |(ts, text)| vec![Value::from(ts), symbols.get(text).into()];
    table.rows = marks.into_iter().map(row).collect();
    Ok(table)
}
