//! Queries on generated recordings, compared with manually computed answers and with SQL on the
//! same files.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod accounting;
mod by_hand;
mod differs;
mod duckdb;
mod left_out;
mod made;
mod made_requests;
mod made_sched;
mod made_waits;
mod mapped;
mod measured;
mod oracle;
mod oracle_cpu;
mod oracle_heat;
mod oracle_owners;
mod oracle_requests;
mod oracle_time;
mod oracle_versus;
mod oracle_waits;
mod outliers;
mod property;
mod recorder;
mod requests;
mod shown;
mod topic_states;
