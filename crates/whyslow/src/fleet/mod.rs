//! Questions of fleets, as far as they are this program's: what can be asked, and how an answer of the
//! Python package becomes one of ours. The texts are in `sql/fleet/`, the engines in `python/`.

mod child;
mod keeper;
mod questions;
mod received;

pub(crate) use child::{Request, ask};
pub(crate) use keeper::{Keeper, Unanswered, keep};
pub(crate) use questions::{Parameter, QUESTIONS, TextQuestion};
pub(crate) use received::answer;
