//! A recording on disk: a directory with a manifest and sorted Parquet tables.

mod cells;
mod checksums;
mod encode;
mod error;
mod held;
#[cfg(test)]
mod hostile_tests;
mod kept;
mod limits;
mod manifest;
mod memory;
mod merge;
pub mod packed;
mod pread;
mod prune;
mod recording;
mod rows;
mod schema;
mod series;
mod source;
mod spill;
mod staging;
mod table_file;
mod table_writer;
mod writer;

pub use error::StoreError;
pub use limits::Limits;
pub use manifest::FORMAT_VERSION;
pub use memory::MemoryTables;
pub use recording::Recording;
pub use rows::{each_row, rows};
pub use source::{Cut, Part, RecordingInfo, Scan, SourceInfo, TableInfo, Tables, Visit};
pub use staging::Existing;
pub use writer::RecordingWriter;

// The tests name the crate as its users do.
#[cfg(test)]
extern crate self as whyslow_store;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
