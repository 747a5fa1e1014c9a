//! The tables of the lake, one file each.

mod finding;
mod histogram;
mod label;
mod recording;
mod rollup;
mod slowest;

pub use finding::FindingRow;
pub use histogram::HistogramRow;
pub use label::LabelRow;
pub use recording::RecordingRow;
pub use rollup::RollupRow;
pub use slowest::SlowestRow;

use crate::columns::{LakeRow, LakeTable};

/// Every table, in the order of the documentation.
pub static ALL: [&LakeTable; 6] = [
    RecordingRow::TABLE,
    LabelRow::TABLE,
    FindingRow::TABLE,
    RollupRow::TABLE,
    HistogramRow::TABLE,
    SlowestRow::TABLE,
];
