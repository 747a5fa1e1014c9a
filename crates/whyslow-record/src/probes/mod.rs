//! Functions and USDT probes requested by name: their syntax, their meaning, and suggestions for
//! misspelt names.

mod arguments;
mod names;
mod places;
mod spec;

pub(crate) use arguments::{Argument, parse, wire};
pub(crate) use names::{Names, Near, fits, near};
pub(crate) use places::{base, each_name, on_disk};
pub use spec::ProbeSpec;
pub(crate) use spec::What;
