//! A recording on disk: a directory with a manifest and sorted Parquet tables.

mod error;
mod source;

pub use error::StoreError;
pub use source::{Part, RecordingInfo, Scan, SourceInfo, TableInfo, Tables, Visit};
