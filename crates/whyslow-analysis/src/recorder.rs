//! What a recording reports about its own recorder.

use std::ops::ControlFlow;

use whyslow_model::recorder::{RECORDER_CPU, RECORDER_ELAPSED, RECORDER_PID, cpu_share};
use whyslow_model::row::Row;
use whyslow_model::tables::MetadataRow;
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// Name of our recorder, as its thread and as the start of the name of its tracer.
const NAME: &str = "whyslow";

/// The recorder of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorder {
    /// Its process id; `None` for other tracers, and for recordings of older versions.
    pub pid: Option<i32>,
    /// Its CPU time per elapsed time of the whole recording: 1 is one CPU. Without its BPF programs,
    /// which are charged to the threads that they interrupt.
    pub cpu_share: Option<f64>,
    is_ours: bool,
}

impl Recorder {
    /// Reads the facts that the recorder wrote.
    pub fn of(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut projection = Projection::new(MetadataRow::TABLE);
        let [key, value] = ["key", "value"].map(|name| projection.need(name));
        let mut recorder = Self::default();
        let (mut cpu, mut elapsed) = (None, None);
        in_order(tables, &projection.scan(None), |batch| {
            let (key, value) = (key.texts(batch)?, value.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let Some(value) = value.get(row) else {
                    continue;
                };
                match key.get(row) {
                    Some(RECORDER_PID) => recorder.pid = value.parse().ok(),
                    Some(RECORDER_CPU) => cpu = Some(value.to_owned()),
                    Some(RECORDER_ELAPSED) => elapsed = Some(value.to_owned()),
                    Some("tracer_name") => recorder.is_ours |= value.starts_with(NAME),
                    _ => {}
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        recorder.cpu_share = cpu_share(cpu.as_deref(), elapsed.as_deref());
        Ok(recorder)
    }

    /// Whether a process of this name is the recorder, in a recording of an older version, which does
    /// not identify it. Otherwise it is marked in the tables.
    pub fn is_by_name(&self, comm: &str) -> bool {
        self.is_ours && self.pid.is_none() && comm == NAME
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::Symbols;
    use whyslow_model::tables::Collected;
    use whyslow_store::{MemoryTables, RecordingInfo};

    use super::*;

    fn recorder(facts: &[(&str, &str)]) -> Recorder {
        let mut symbols = Symbols::new();
        let mut rows = Collected::default();
        for (id, (key, value)) in facts.iter().enumerate() {
            rows.metadata.push(MetadataRow {
                id: id as i64,
                source: None,
                key: symbols.intern(key),
                value: symbols.intern(value),
            });
        }
        let tables = MemoryTables::new(&rows, &symbols, RecordingInfo::default());
        Recorder::of(&tables).expect("tables in memory")
    }

    #[test]
    fn a_name_identifies_only_recorders_that_did_not_report_their_id() {
        let old = recorder(&[("tracer_name", "whyslow 0.1.0")]);
        assert!(old.is_by_name("whyslow") && !old.is_by_name("dd"));
        assert_eq!((old.pid, old.cpu_share), (None, None));
        let new = recorder(&[
            ("tracer_name", "whyslow 0.2.0"),
            ("recorder_pid", "77"),
            ("recorder_cpu_ns", "187200000"),
            ("recorder_elapsed_ns", "3900000000"),
        ]);
        assert!(!new.is_by_name("whyslow"));
        assert_eq!((new.pid, new.cpu_share), (Some(77), Some(0.048)));
        let other = recorder(&[("tracer_name", "lttng-modules")]);
        assert!(!other.is_by_name("whyslow"));
    }
}
