//! Questions to made recordings, against hand-made answers and against SQL on the same files.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod by_hand;
mod duckdb;
mod made;
mod made_sched;
mod measured;
mod oracle;
mod oracle_cpu;
mod oracle_heat;
mod oracle_time;
mod oracle_versus;
mod outliers;
mod property;
mod shown;
mod told;
