//! Questions about a recording: kinds (what is measured) × verbs (how it is shown).

mod error;
mod query;

pub use error::AnalysisError;
pub use query::{Bins, DeviceRef, Filter, Kind, Question, Sort, Verb, Weight};
