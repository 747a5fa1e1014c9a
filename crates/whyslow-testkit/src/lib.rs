//! What tests of several crates share. Only ever a `dev-dependency`.

mod data;
mod need;
mod skip;

pub use data::{data_folder, fixture};
pub use need::Need;
pub use skip::{skip, skip_unless_installed};
