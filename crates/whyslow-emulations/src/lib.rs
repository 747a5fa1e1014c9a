//! `as TOOL`: a recording in the columns, units and options of a well-known tool.
//!
//! Each tool is one file with its name, its options and its output, which is made from the answers
//! of the same queries as all other output, so the two never contradict each other.

mod bcc;
mod cells;
mod command;
mod df;
mod equivalents;
mod front;
mod iotop;
mod list;
mod live;
mod lttng;
mod sysstat;
mod tool;
mod top;

pub use command::{AsCommand, complete};
pub use equivalents::{equivalents, known_tools};
