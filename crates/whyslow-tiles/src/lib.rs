//! A recording at every scale: what a chart of any width needs, without reading it all.
//!
//! [`Place::build`] makes tiles in one pass over the tables, [`Place::open`] opens those of before.

mod error;
mod place;
mod tiles;
mod told;

pub use error::TilesError;
pub use place::{Place, build};
pub use tiles::Tiles;
pub use told::{Heat, HeatCell, Lane, LeftOut, Run, Series, Track};

/// Cells of a tile.
pub const CELLS: u64 = 1024;
/// The coarsest level: cells of 2^50 ns.
pub const LEVEL_MAX: u8 = 50;
