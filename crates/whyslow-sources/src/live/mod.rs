//! `@live`: this machine as the source, in place of a recording.
//!
//! Our own recorder, or a running one that is followed, fills one spool after the other. Each
//! becomes a recording in a private directory, and is queried like any other recording, by a
//! separate thread. If answers take longer than the intervals, the intervals are extended: nothing
//! piles up, and nothing is skipped.

mod answers;
mod folder;
mod follow;
mod handover;
mod import_budget;
mod lookups;
mod outliers;
mod plan;
mod recorder;
mod recorder_choice;
mod rolling;
mod run;
mod segment;

pub use folder::LiveFolder;
pub use lookups::count_lookups;
pub use outliers::{Watched, watch};
pub use plan::Plan;
pub use recorder_choice::RecorderChoice;
pub use rolling::{Shown, roll};
pub use run::run;
pub use segment::{Segment, Shared};
