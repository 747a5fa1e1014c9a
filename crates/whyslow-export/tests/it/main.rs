//! What is exported against what the recording says.

mod openmetrics;
mod snapshot;
mod stacks;
