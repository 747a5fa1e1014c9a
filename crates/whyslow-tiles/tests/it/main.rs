//! Tiles against what rows say, one by one.

#[path = "../../../whyslow-model/tests/support/cells.rs"]
mod cells;
mod damage;
mod edges;
mod locks;
mod made;
mod places;
mod property;
mod recordings;
mod samples;
mod support;
