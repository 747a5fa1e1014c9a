//! `whyslow serve` as browsers and programs see it.

#[path = "../common/mod.rs"]
mod common;

mod across;
mod answers;
mod charts;
mod client;
mod described;
mod drawn;
mod more;
mod refused;
mod schema;
mod whole;
