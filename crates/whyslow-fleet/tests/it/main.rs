//! Lakes in folders and in an object store that fails: whatever happens, what is committed is there
//! once and whole.

mod faults;
mod made;
mod pushes;
mod store;
mod summaries;
mod upkeep;
