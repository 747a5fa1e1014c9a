//! Lakes in directories and in a failing object store: whatever happens, committed recordings are
//! there exactly once and complete.

mod faults;
mod former_versions;
mod made;
mod pushes;
mod store;
mod summaries;
mod upkeep;
