//! The recording a command uses.

mod flight;
mod history;
mod last;
mod opened;
mod redacted;
mod terminal;
mod unpacked;

pub use last::{remember, state_folder};
pub use opened::{Opened, place};
