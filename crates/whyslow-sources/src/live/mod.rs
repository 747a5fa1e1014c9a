//! `@live`: this machine now, where a recording is taken otherwise.
//!
//! A recorder of our own, or one that runs already and is followed, fills one spool after the other;
//! each becomes a recording in a folder of our own, and is asked as every other one, by a thread beside.
//! If answers take longer than the intervals, the intervals get longer: nothing piles up, and nothing is
//! left out.

mod answers;
mod between;
mod follow;
mod lookups;
mod outliers;
mod plan;
mod recorder;
mod rolling;
mod room;
mod run;
mod segment;
mod whom;

pub use lookups::count_lookups;
pub use outliers::{Watched, watch};
pub use plan::Plan;
pub use rolling::{Shown, roll};
pub use room::Room;
pub use run::run;
pub use segment::{Segment, Shared};
pub use whom::Whom;
