//! The slowest operations of each kind and class.

use whyslow_analysis::{Query, Verb, evaluate, rollup};
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::{RecordingFacts, SummaryError};
use crate::tables::SlowestRow;

/// Rows for each class of operation.
const ROWS: usize = 5;

pub(super) fn of(
    tables: &dyn Tables,
    facts: &RecordingFacts,
) -> Result<Vec<SlowestRow>, SummaryError> {
    let mut found = Vec::new();
    for kind in rollup::kinds() {
        if tables.info().rows_of_whole(kind.table) == 0 {
            continue;
        }
        let mut query = Query::new(kind.kind, Verb::Top);
        query.by = vec![kind.op.unwrap_or("none").to_owned()];
        query.limit = Some(ROWS);
        for table in &evaluate(tables, &query)?.tables {
            found.extend(rows(table, &kind, facts));
        }
    }
    found.index_sort_by(|a, b| {
        let place = |row: &SlowestRow| (row.kind.clone(), row.op.clone(), row.ts);
        place(a).cmp(&place(b)).then_with(|| a.id.cmp(&b.id))
    });
    Ok(found)
}

fn rows<'t>(
    table: &'t AnswerTable,
    kind: &'t rollup::Kind,
    facts: &'t RecordingFacts,
) -> impl Iterator<Item = SlowestRow> + 't {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let first = |names: &[&str]| names.iter().find_map(|name| place(name));
    let (ts, dur, id) = (place("ts_ns"), place("dur_ns"), place("id"));
    let (comm, tid) = (place("comm"), place("tid"));
    let op = kind.op.and_then(place);
    let object = first(&["path", "dev", "endpoint", "host", "lock"]);
    let int = |row: &[Value], at: Option<usize>| match row.get(at?)? {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    let text = |row: &[Value], at: Option<usize>| match row.get(at?)? {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    table.rows.iter().filter_map(move |row| {
        Some(SlowestRow {
            recording: facts.recording.clone(),
            host: facts.host.clone(),
            ts: int(row, ts)?,
            dur: int(row, dur)?,
            kind: kind.name.to_owned(),
            op: text(row, op).unwrap_or_default(),
            process: text(row, comm),
            tid: int(row, tid),
            object: text(row, object),
            id: text(row, id)?,
        })
    })
}
