//! Spools of the recorder: blocks of records in approximate time order.
//!
//! A record of a system call also contains its entry time, which precedes earlier records by a
//! tenth of a second at most, because the recorder writes longer calls before they end. So records
//! are buffered for this long beyond the time up to which the spool is complete.

mod block;
mod calls;
mod cgroup;
mod clocks;
mod fill;
mod host;
mod kernel;
mod leave_out;
mod map;
mod names;
mod order;
mod probes;
mod reader;
mod stacks;

pub(crate) use clocks::{Reading, Step};
pub use leave_out::LeaveOut;
pub(crate) use map::{Converted, Mapper, Place};
pub(crate) use names::Names;
pub(crate) use order::Window;
pub(crate) use probes::Values;
pub(crate) use reader::{SpoolReader, is_spool};
