//! Helpers for tests of several crates. Only used as a `dev-dependency`.

mod data;
mod need;
mod once;
mod skip;

pub use data::{data_folder, fixture};
pub use need::Need;
pub use once::made_once;
pub use skip::{skip, skip_unless_installed};
