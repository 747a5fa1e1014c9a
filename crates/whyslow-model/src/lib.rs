//! The vocabulary of whyslow: time, ids, events, table schemas, answers.
//!
//! No I/O and no query engine; all other crates depend on this one. It defines what a source can
//! report ([`event`]) and what a recording contains ([`tables`]).

pub mod answer;
pub mod counter;
pub mod errno;
pub mod event;
pub mod histogram;
pub mod lookup;
pub mod mechanism;
pub mod probe;
pub mod recorder;
pub mod row;
pub mod sort;
pub mod spool;
pub mod stat;
pub mod symbol;
pub mod syscall;
pub mod tables;
pub mod text;
pub mod topic_state;
pub mod trigger;
pub mod window;

pub use row::{Column, ColumnType, Feed, Row, Shape, Sink, Table, Unit};
pub use symbol::{Strings, Sym, Symbols};
pub use window::Window;

/// Nanoseconds: since the Unix epoch for a point in time (`ts`), a duration for `dur`.
pub type Ns = i64;
