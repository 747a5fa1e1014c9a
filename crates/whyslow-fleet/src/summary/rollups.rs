//! Per-second totals of a recording.

use whyslow_analysis::rollup::{Cell, rollup};
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::{RecordingFacts, SummaryError};
use crate::tables::{HistogramRow, RollupRow};

pub(super) fn of(
    tables: &dyn Tables,
    facts: &RecordingFacts,
) -> Result<(Vec<RollupRow>, Vec<HistogramRow>), SummaryError> {
    let mut cells = rollup(tables)?;
    let place = |cell: &Cell| (cell.kind, cell.dimension);
    cells.index_sort_by(|a, b| {
        let ours = (place(a), &a.op, &a.key, a.ts);
        ours.cmp(&(place(b), &b.op, &b.key, b.ts))
    });
    let rollups = cells.iter().map(|cell| row(cell, facts)).collect();
    let histograms = cells.iter().flat_map(|cell| buckets(cell, facts)).collect();
    Ok((rollups, histograms))
}

fn row(cell: &Cell, facts: &RecordingFacts) -> RollupRow {
    RollupRow {
        recording: facts.recording.clone(),
        host: facts.host.clone(),
        ts: cell.ts,
        kind: cell.kind.to_owned(),
        dimension: cell.dimension.to_owned(),
        key: cell.key.clone(),
        op: cell.op.clone(),
        count: cell.count as i64,
        finished: cell.finished() as i64,
        errors: cell.errors.map(|errors| errors as i64),
        bytes: cell.bytes,
        dur_total_ns: cell.total_ns(),
        dur_min_ns: cell.min_ns(),
        dur_max_ns: cell.max_ns(),
    }
}

fn buckets<'c>(
    cell: &'c Cell,
    facts: &'c RecordingFacts,
) -> impl Iterator<Item = HistogramRow> + 'c {
    cell.buckets().into_iter().map(|bucket| HistogramRow {
        recording: facts.recording.clone(),
        host: facts.host.clone(),
        ts: cell.ts,
        kind: cell.kind.to_owned(),
        dimension: cell.dimension.to_owned(),
        key: cell.key.clone(),
        op: cell.op.clone(),
        bucket: bucket.bucket,
        value_ns: bucket.value_ns,
        count: bucket.count as i64,
    })
}
