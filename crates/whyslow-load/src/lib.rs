//! Sends requests, and tells what each spent its time with.
//!
//! A [`Plan`] says what is asked and when. [`Run`] does it, with one connection of each worker and
//! server, and tells every request that began as a [`Row`], whatever became of it: nothing is tried
//! again, and no request begins that was not asked for. Rows come in order of their ends; [`Spool`]
//! writes them while the run goes on, [`Summary`] sums them up.

mod clock;
mod connection;
mod durations;
mod error;
mod fault;
mod flight;
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
mod worker;

pub use error::LoadError;
pub use plan::{Connections, Http, Limits, Model, Plan, Redirects, Trace, Trust};
pub use row::{Link, Outcome, Phases, Row};
pub use run::{Ended, Progress, Reason, Run, Sink, StageEnded};
pub use spool::{Header, Spool, VERSION};
pub use summary::Summary;
pub use tables::List;
pub use target::{Asked, Target};

// The tests name the crate as its users do.
#[cfg(test)]
extern crate self as whyslow_load;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
