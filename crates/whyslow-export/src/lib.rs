//! Exports of recordings: for trace viewers, profilers, and for sharing.

mod collapsed;
mod error;
mod firefox;
pub mod flame;
mod logged;
pub mod openmetrics;
mod otlp;
mod perfetto;
mod pprof;
mod profile;
pub mod redact;
pub mod snapshot;
mod speedscope;
pub mod stacks;
mod svg;

pub use collapsed::write_collapsed;
pub use error::ExportError;
pub use firefox::write_firefox;
pub use otlp::{Spans, write_otlp};
pub use perfetto::{Written, write_perfetto};
pub use pprof::write_pprof;
pub use speedscope::write_speedscope;
pub use svg::{Chart, SvgLook, write_chart, write_svg};

// The tests refer to the crate by its public name.
#[cfg(test)]
extern crate self as whyslow_export;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
