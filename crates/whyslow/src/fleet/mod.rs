//! Questions of fleets, as far as they are this program's: what can be asked, and how an answer of the
//! Python package becomes one of ours. The texts are in `sql/fleet/`, the engines in `python/`.

mod cell_text;
#[cfg(feature = "fleet")]
mod child;
mod keeper;
#[cfg(feature = "fleet")]
mod kept;
mod questions;
mod received;
mod request;

#[cfg(feature = "fleet")]
pub(crate) use child::ask;
pub(crate) use keeper::{Keeper, Unanswered};
#[cfg(feature = "fleet")]
pub(crate) use kept::keep;
pub(crate) use questions::{Parameter, QUESTIONS, TextQuestion};
pub(crate) use received::answer;
pub(crate) use request::request_of;
