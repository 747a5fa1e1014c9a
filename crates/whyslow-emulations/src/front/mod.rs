//! What the fronts in the shape of live tools share: how their words are read, the range of time
//! and its parts, and how rows of our questions reach them.
//!
//! A live tool shows what happens while it runs; here it shows a window of a recording, and an
//! interval cuts the window into parts. Events that have a length (requests, calls) count in the
//! part in which they end, because that is when a live tool learns of them.

pub(crate) mod activity;
mod by_end;
pub(crate) mod counters;
mod cpus;
mod parts;
mod session;
pub(crate) mod words;

pub(crate) use by_end::ByEnd;
pub(crate) use cpus::CpuShares;
pub(crate) use parts::Parts;
pub(crate) use session::{Front, FrontArgs, shown, with_args};
pub(crate) use words::Words;
