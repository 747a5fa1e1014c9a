//! A recording on disk: a directory with a manifest and sorted Parquet tables.

mod cells;
mod error;
mod limits;
mod manifest;
mod schema;
mod series;
mod source;
mod spill;
mod staging;
mod table_writer;
mod writer;

pub use error::StoreError;
pub use source::{Part, RecordingInfo, Scan, SourceInfo, TableInfo, Tables, Visit};
pub use staging::Existing;
pub use writer::RecordingWriter;
