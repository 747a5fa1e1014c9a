//! `whyslow serve` as seen by browsers and programs.

mod across;
mod answers;
mod charts;
pub(crate) mod client;
mod described;
mod drawn;
mod more;
mod refused;
mod schema;
mod whole;
