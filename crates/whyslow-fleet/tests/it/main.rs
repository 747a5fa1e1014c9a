//! Lakes in folders and in an object store that fails: whatever happens, what is committed is there
//! once and whole.

#[path = "../../../whyslow-model/tests/support/cells.rs"]
mod cells;
mod faults;
mod made;
mod pushes;
mod store;
mod summaries;
mod upkeep;
