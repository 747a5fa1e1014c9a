//! Queries of a lake of many recordings, and the conversion of answers of the Python package. The
//! SQL is in `sql/fleet/`, the engines in `python/`.

mod cell_text;
mod child;
mod queries;
mod received;
mod request;
mod worker;
mod worker_main;

pub use child::evaluate;
pub use queries::{Parameter, QUERIES, TextQuery};
pub use received::answer;
pub use request::Request;
pub use worker::{LakeWorker, QueryFailure};
pub use worker_main::keep;
