//! A recording at every scale: what a chart of any width needs, without reading it all.
//!
//! [`Place::build`] makes tiles in one pass over the tables, [`Place::open`] opens those of before.
//! A tile is a row of cells for each lane (a thread, a CPU, a device); see [`Run`].

mod about;
mod build;
mod error;
mod heat;
mod item;
mod kinds;
mod level;
mod limits;
mod place;
mod series;
mod store;
mod sweeping;
mod tile;
mod tiles;
mod told;

pub use build::build;
pub use error::TilesError;
pub use place::Place;
pub use tiles::Tiles;
pub use told::{Heat, HeatCell, Lane, LeftOut, Run, Series, Track};

/// Cells of a tile.
pub const CELLS: u64 = 1024;
/// The coarsest level: cells of 2^50 ns.
pub const LEVEL_MAX: u8 = 50;

// The tests name the crate as its users do.
#[cfg(test)]
extern crate self as whyslow_tiles;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
