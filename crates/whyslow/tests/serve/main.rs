//! `whyslow serve` as browsers and programs see it.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod client;
mod refused;
mod whole;
