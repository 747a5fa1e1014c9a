//! Compares exports with the recording.

mod openmetrics;
mod snapshot;
mod stacks;
