//! Integration tests of the command line program.

mod across;
mod answers;
mod as_lttng;
mod common;
mod demo;
mod errors;
mod explain;
#[cfg(feature = "fleet")]
mod fleet;
mod kafka;
mod lami;
mod live_record;
mod live_tools;
#[cfg(feature = "load")]
mod load;
mod load_compared;
mod profiles;
mod report;
mod requests;
mod serve;
mod snapshot;
mod sql;
mod streams;
mod threads;
mod topic_states;
mod view_answers;
mod waits_for_work;
mod web_servers;
