//! Importers of other tools' formats, one directory or file each.

mod bad;
pub mod blkparse;
pub mod blktrace;
mod bytes;
pub mod ctf;
pub mod ftrace;
pub mod jfr;
pub mod jstack;
pub mod markers;
pub mod perf;
pub mod pyspy;
pub mod requests;
pub mod rwbs;
pub mod samplers;
pub mod snoops;
pub(crate) mod spool;
mod stamp;
pub mod strace;
pub mod streamed;
pub mod sysstat;
pub mod task_state;
pub mod text;
pub mod tracedat;
pub mod tracepoint;

pub use bad::Bad;
