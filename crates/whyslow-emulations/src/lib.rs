//! `as TOOL`: a recording in the columns, units and options of a tool that people know.
//!
//! Each tool is one file with its name, its options and what it prints. What it prints is made from
//! the answers of the same questions as everything else, so that the two never say different things.

mod bcc;
mod cells;
mod command;
mod df;
mod front;
mod iotop;
mod list;
mod live;
mod lttng;
mod sysstat;
mod tool;
mod top;

pub use command::{AsCommand, complete};
