//! The Common Trace Format, versions 1.8 and 2: traces of LTTng and others.

pub mod class;
pub mod consumer;
pub mod decoded;
mod field_lookup;
pub mod lttng;
pub mod metadata;
mod tsdl;
pub mod value;
