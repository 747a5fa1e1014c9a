//! The recording a command uses.

mod last;
mod opened;
mod redacted;
mod unpacked;

pub use last::{remember, state_folder};
pub use opened::{Opened, place};
