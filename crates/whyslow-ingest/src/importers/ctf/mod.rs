//! The Common Trace Format, versions 1.8 and 2: traces of LTTng and others.

mod assemble;
mod bits;
pub mod class;
mod compile;
pub mod consumer;
mod cycles;
mod decode;
pub mod decoded;
pub mod error;
mod field_lookup;
mod header;
mod index;
mod json;
pub mod layout;
mod locations;
pub mod lttng;
mod merge;
pub mod metadata;
mod packet;
mod phase;
mod plan;
pub mod reader;
mod render;
mod resync;
mod schema;
mod slot;
mod stream;
mod tally;
mod tsdl;
mod want;
mod window;

pub use super::tracepoint::value;
pub use plan::PlanError;
pub use tally::Anomaly;
