//! Sources of answers: a recording, this machine live, the tables of a recording in DuckDB, a lake
//! of many recordings.

pub mod confine;
pub mod duckdb;
pub mod lake;
pub mod live;
pub mod recording;
