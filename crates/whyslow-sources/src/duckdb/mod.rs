//! The duckdb command line: where it is, and what it is told of a recording.

pub mod program;
pub mod views;
