//! The duckdb command line: its location, and its setup for a recording.

pub mod program;
pub mod views;
