//! Summary of a recording: rows of the lake tables, computed once.

mod facts;
mod findings;
mod rollups;
mod slowest;

use whyslow_analysis::AnalysisError;
use whyslow_store::{StoreError, Tables};

use crate::tables::{FindingRow, HistogramRow, LabelRow, RecordingRow, RollupRow, SlowestRow};

/// What the caller of a push knows about a recording.
#[derive(Debug, Clone, Default)]
pub struct RecordingFacts {
    /// Id of the recording.
    pub recording: String,
    /// Digest of its content.
    pub digest: String,
    /// Name of its host.
    pub host: String,
    /// Name as used in commands.
    pub name: String,
    /// Where it is: `HOST:PATH`.
    pub origin: Option<String>,
    /// Labels of its host: name and value.
    pub labels: Vec<(String, String)>,
    /// Whether its tables are pushed, too.
    pub raw: bool,
}

/// Rows of the lake.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The recording itself: one row.
    pub recording: RecordingRow,
    /// Labels of its host.
    pub labels: Vec<LabelRow>,
    /// Findings of `explain` over the whole recording.
    pub findings: Vec<FindingRow>,
    /// Totals per second, by kind, class and one more dimension at a time.
    pub rollups: Vec<RollupRow>,
    /// Latency histograms of the same groups, which can be merged across recordings.
    pub histograms: Vec<HistogramRow>,
    /// Slowest operations of each kind and class.
    pub slowest: Vec<SlowestRow>,
}

/// Why a recording could not be summarised.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// A query over its tables failed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// Its tables could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Summary {
    /// Reads the recording several times, which takes as long as `explain` and a few queries.
    pub fn of(tables: &dyn Tables, facts: &RecordingFacts) -> Result<Self, SummaryError> {
        let recording = facts::recording(tables, facts)?;
        let labels = facts::labels(&recording, facts);
        let (rollups, histograms) = rollups::of(tables, facts)?;
        Ok(Self {
            labels,
            findings: findings::of(tables, facts)?,
            rollups,
            histograms,
            slowest: slowest::of(tables, facts)?,
            recording,
        })
    }
}
