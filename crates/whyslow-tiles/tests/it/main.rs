//! Compares tiles with the rows that they were built from.

mod damage;
mod edges;
mod locks;
mod made;
mod places;
mod property;
mod recordings;
mod samples;
mod support;
