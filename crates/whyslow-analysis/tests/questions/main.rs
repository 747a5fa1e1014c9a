//! Questions to made recordings, against hand-made answers and against SQL on the same files.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod by_hand;
mod duckdb;
mod made;
mod oracle;
mod outliers;
mod property;
mod shown;
