//! A lake of many recordings: what can be asked of it, and how an answer of the Python package becomes
//! one of ours. The texts are in `sql/fleet/`, the engines in `python/`.

mod cell_text;
mod child;
mod keeper;
mod kept;
mod questions;
mod received;
mod request;

pub use child::ask;
pub use keeper::{Keeper, Unanswered};
pub use kept::keep;
pub use questions::{Parameter, QUESTIONS, TextQuestion};
pub use received::answer;
pub use request::Request;
