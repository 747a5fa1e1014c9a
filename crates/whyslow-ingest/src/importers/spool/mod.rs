//! Spools of the recorder: blocks of records that are nearly in order of time.
//!
//! A record of a system call tells of its entry too, which lies before records that came earlier: by
//! a tenth of a second at most, because the recorder tells of longer calls before they end. So what
//! was read waits so long beyond the moment up to which everything is told.

mod block;
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
mod told;

pub(crate) use clocks::{Reading, Step};
pub use leave_out::LeaveOut;
pub(crate) use map::{Mapper, Place, Told};
pub(crate) use names::Names;
pub(crate) use order::Window;
pub(crate) use probes::Values;
pub(crate) use reader::{SpoolReader, is_spool};
