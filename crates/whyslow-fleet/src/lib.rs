//! Summaries of many recordings in one lake: a few kilobytes per recording, and the objects that
//! hold them.
//!
//! Analysis runs once per recording, where it is cheap; fleet queries use its results. These are
//! tables ([`tables`]) in plain Parquet; `docs/fleet.md` describes the layout.

mod columns;
mod encode;
mod identity;
pub mod lake;
mod row_order;
mod summary;
pub mod tables;

pub use columns::{LakeRow, LakeTable};
pub use identity::recording_id;
pub use summary::{RecordingFacts, Summary, SummaryError};

// The tests refer to the crate by its public name.
#[cfg(test)]
extern crate self as whyslow_fleet;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
