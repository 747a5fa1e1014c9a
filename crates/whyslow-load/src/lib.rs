//! Sends HTTP requests and measures the phases of each.
//!
//! A [`Plan`] defines what is requested and when. [`Run`] executes it, with one connection per
//! worker and server, and reports every started request as a [`Row`], whatever its outcome:
//! requests are never retried, and only those of the plan are sent. Rows are reported in order of
//! their ends; [`Spool`] writes them during the run, [`Summary`] aggregates them.

mod clock;
mod connection;
mod durations;
mod error;
mod fault;
mod in_flight;
mod line;
mod order;
mod pacer;
mod plan;
mod row;
mod run;
mod shared;
mod spool;
mod stream;
mod summary;
mod tables;
mod target;
mod tls;
mod trend;
mod worker;

pub use error::LoadError;
pub use plan::{Connections, Http, Limits, Model, Plan, Redirects, Trace, Trust};
pub use row::{Link, Outcome, Phases, Row};
pub use run::{Ended, Progress, Reason, Run, Sink, StageEnded};
pub use spool::{Header, Spool, VERSION};
pub use summary::Summary;
pub use tables::List;
pub use target::{RequestTemplate, Target};

// The tests refer to the crate by its public name.
#[cfg(test)]
extern crate self as whyslow_load;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
