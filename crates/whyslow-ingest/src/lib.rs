//! Imports files of other tools into a recording: detect, read, sort, track, write.

pub mod archive;
pub mod cache;
mod clock;
pub mod detect;
mod digest;
pub mod formats;
pub mod importers;
mod limits;
mod pipeline;
pub mod profile;
mod sorter;
pub mod trackers;

pub use importers::spool::LeaveOut;
pub use pipeline::{
    AnomalyReport, ImportError, ImportOptions, ImportReport, InMemory, Progress, RecordCounts,
    Stage, import, import_in_memory,
};
