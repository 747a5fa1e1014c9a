//! What every command needs: failures and how they are reported, interruption, times and sizes as
//! people write them, shared flags.

pub mod args;
pub mod failure;
pub mod interrupt;
pub mod private_folder;
pub mod progress;
mod signal;
pub mod talk;
pub mod time;
