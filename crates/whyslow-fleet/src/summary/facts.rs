//! Facts about the recording and its host.

use std::collections::BTreeMap;

use whyslow_analysis::{is_recorded, rollup};
use whyslow_model::Symbols;
use whyslow_model::tables::{CpuRow, LostEventsRow, MetadataRow};
use whyslow_store::{Tables, rows};

use super::{RecordingFacts, SummaryError};
use crate::tables::{LabelRow, RecordingRow};

pub(super) fn recording(
    tables: &dyn Tables,
    facts: &RecordingFacts,
) -> Result<RecordingRow, SummaryError> {
    let info = tables.info();
    let mut symbols = Symbols::new();
    let mut metadata: BTreeMap<String, String> = BTreeMap::new();
    for row in rows::<MetadataRow>(tables, &mut symbols)? {
        let (key, value) = (symbols.get(row.key), symbols.get(row.value));
        metadata
            .entry(key.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    let lost = rows::<LostEventsRow>(tables, &mut symbols)?;
    let cpus = rows::<CpuRow>(tables, &mut symbols)?.len();
    let known = |key: &str| metadata.get(key).cloned();
    let mut kinds: Vec<&str> = info
        .sources
        .iter()
        .map(|source| source.kind.as_str())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut missing = Vec::new();
    for kind in rollup::kinds() {
        if !is_recorded(tables, kind.table)? {
            missing.push(kind.name);
        }
    }
    Ok(RecordingRow {
        recording: facts.recording.clone(),
        host: facts.host.clone(),
        ts: info.begin_ns,
        dur: info.end_ns.saturating_sub(info.begin_ns),
        ts_end: info.end_ns,
        kernel: known("kernel_release"),
        machine: known("machine").or_else(|| known("architecture")),
        cpus: (cpus > 0).then_some(cpus as i32),
        zone: info.zone.clone(),
        source: kinds.join("+"),
        rows: info.tables.values().map(|table| table.rows as i64).sum(),
        losses: lost.len() as i64,
        lost_events: lost
            .iter()
            .filter_map(|row| row.count)
            .fold(0, i64::saturating_add),
        missing: missing.join(","),
        redacted: info.redacted.clone(),
        raw: facts.raw,
        digest: facts.digest.clone(),
        origin: facts.origin.clone(),
        written_by: format!("whyslow {}", env!("CARGO_PKG_VERSION")),
    })
}

/// Labels derived from the recording, and those of the user; the latter take precedence.
pub(super) fn labels(recording: &RecordingRow, facts: &RecordingFacts) -> Vec<LabelRow> {
    let mut labels: BTreeMap<&str, String> = BTreeMap::new();
    let derived = [
        ("kernel", recording.kernel.clone()),
        ("machine", recording.machine.clone()),
        ("cpus", recording.cpus.map(|cpus| cpus.to_string())),
        ("zone", recording.zone.clone()),
        ("source", Some(recording.source.clone())),
    ];
    for (name, value) in derived {
        labels.extend(
            value
                .filter(|value| !value.is_empty())
                .map(|value| (name, value)),
        );
    }
    labels.extend(
        facts
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    let row = |(name, value): (&str, String)| LabelRow {
        recording: recording.recording.clone(),
        host: recording.host.clone(),
        name: name.to_owned(),
        value,
    };
    labels.into_iter().map(row).collect()
}
