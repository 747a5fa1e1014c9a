//! Functions and static probes of programs that somebody asks for by name: how that is written, what
//! it means, and what is near where nothing has that name.

mod arguments;
mod names;
mod places;
mod spec;

pub(crate) use arguments::{Argument, parse, wire};
pub(crate) use names::{Names, Near, fits, near};
pub(crate) use places::{base, each_name, on_disk};
pub use spec::ProbeSpec;
pub(crate) use spec::What;
