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
    pub recording: RecordingRow,
    pub labels: Vec<LabelRow>,
    pub findings: Vec<FindingRow>,
    pub rollups: Vec<RollupRow>,
    pub histograms: Vec<HistogramRow>,
    pub slowest: Vec<SlowestRow>,
}

#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
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
