//! Readers of foreign formats, one folder or file each.

pub mod ctf;
pub mod ftrace;
pub mod jfr;
pub mod jstack;
pub mod perf;
pub mod rwbs;
pub mod samplers;
pub(crate) mod spool;

pub mod strace;
pub mod task_state;
pub mod text;
pub mod tracepoint;
