//! `whyslow serve` as browsers and programs see it.

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
