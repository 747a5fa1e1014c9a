//! What a recording comes to: rows of the lake's tables, made once.

mod facts;
mod findings;
mod rollups;
mod slowest;

use whyslow_analysis::AnalysisError;
use whyslow_store::{StoreError, Tables};

use crate::tables::{FindingRow, HistogramRow, LabelRow, RecordingRow, RollupRow, SlowestRow};

/// What the one who pushes says of a recording.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Id of the recording.
    pub recording: String,
    /// Number of what is in it.
    pub digest: String,
    /// Its host's name.
    pub host: String,
    /// As commands name it.
    pub name: String,
    /// Where it is: `HOST:PATH`.
    pub origin: Option<String>,
    /// Names and values that its host belongs to.
    pub labels: Vec<(String, String)>,
    /// Whether its tables are pushed, too.
    pub raw: bool,
}

/// Rows of the lake.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The recording itself: one row.
    pub recording: RecordingRow,
    /// Names and values that its host belongs to.
    pub labels: Vec<LabelRow>,
    /// Findings of `explain` over the whole recording.
    pub findings: Vec<FindingRow>,
    /// Sums of each second, by kind, class and one more dimension at a time.
    pub rollups: Vec<RollupRow>,
    /// Latency histograms of the same groups, which can be added up over recordings.
    pub histograms: Vec<HistogramRow>,
    /// Longest operations of each kind and class.
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
    /// Reads the recording several times: as long as `explain` and a handful of questions take.
    pub fn of(tables: &dyn Tables, told: &Told) -> Result<Self, SummaryError> {
        let recording = facts::recording(tables, told)?;
        let labels = facts::labels(&recording, told);
        let (rollups, histograms) = rollups::of(tables, told)?;
        Ok(Self {
            labels,
            findings: findings::of(tables, told)?,
            rollups,
            histograms,
            slowest: slowest::of(tables, told)?,
            recording,
        })
    }
}
