//! Tiles against what rows say, one by one.

mod damage;
mod edges;
mod locks;
mod made;
mod places;
mod property;
mod recordings;
mod samples;
mod support;
