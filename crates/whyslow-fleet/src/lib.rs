//! Many recordings in one lake: what each comes to, in kilobytes, and the objects that hold it.
//!
//! Analysis happens once, per recording, where it is cheap; questions about a fleet work on its
//! results. These are tables ([`tables`]) of plain Parquet, whose layout `docs/fleet.md` describes.

mod columns;
mod encode;
mod identity;
pub mod lake;
mod row_order;
mod summary;
pub mod tables;

pub use columns::{LakeRow, LakeTable};
pub use identity::recording_id;
pub use summary::{Summary, SummaryError, Told};
