//! Pre-aggregated tiles of a recording, to draw charts at any zoom level without reading it all.
//!
//! [`Place::build`] builds tiles in one pass over the tables, [`Place::open`] opens existing ones.
//! A tile is a row of cells for each lane (a thread, a CPU, a device); see [`Run`].

mod about;
mod build;
mod error;
mod heat;
mod item;
mod kinds;
mod level;
mod limits;
mod model;
mod place;
mod series;
mod store;
mod sweeping;
mod tile;
mod tiles;

pub use build::build;
pub use error::TilesError;
pub use model::{Heat, HeatCell, Lane, LeftOut, Run, Series, Track};
pub use place::Place;
pub use tiles::Tiles;

/// Cells of a tile.
pub const CELLS: u64 = 1024;
/// The coarsest level: cells of 2^50 ns.
pub const LEVEL_MAX: u8 = 50;

// Lets the tests refer to the crate by its external name.
#[cfg(test)]
extern crate self as whyslow_tiles;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
