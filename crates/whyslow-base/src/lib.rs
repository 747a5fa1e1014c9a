//! What every command needs: error reporting, signal handling, parsing of times and sizes, shared
//! flags.

pub mod args;
pub mod failure;
pub mod interrupt;
pub mod private_folder;
pub mod progress;
mod signal;
pub mod talk;
pub mod time;
