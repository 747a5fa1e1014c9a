//! Shared by the emulations of live tools: parsing of positional arguments, the window and its
//! intervals, and access to the rows of queries.
//!
//! A live tool shows what happens while it runs; here it shows a window of a recording, and an
//! interval splits the window. Events with a duration (requests, calls) count in the interval in
//! which they end, because that is when a live tool sees them.

pub(crate) mod activity;
mod by_end;
pub(crate) mod counters;
mod cpus;
mod parts;
pub(crate) mod positionals;
mod session;

pub(crate) use by_end::ByEnd;
pub(crate) use cpus::CpuShares;
pub(crate) use parts::Parts;
pub(crate) use positionals::Positionals;
pub(crate) use session::{Front, FrontArgs, shown, with_args};
