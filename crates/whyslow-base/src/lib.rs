//! What every command needs: error reporting, signal handling, parsing of times and sizes, shared
//! flags.

pub mod args;
pub mod failure;
pub mod interrupt;
mod paths;
pub mod private_folder;
pub mod progress;
mod quoted;
mod signal;
pub mod talk;
pub mod time;

pub use paths::{normalised, path_parser};
pub use quoted::quoted;
