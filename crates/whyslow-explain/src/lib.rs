//! Why an operation was slow, and who did it: from a window of one thread to the thread, request,
//! device or lock that it waited for, with the evidence for each step.

mod ask;
mod behalf;
mod blame;
mod blocks;
mod classify;
mod holders;
mod leaf;
mod moment;
mod overlap;
mod report;
mod say;
mod serial;
mod slow;
mod starved;
mod story;
mod walk;

pub use ask::{Question, STORIES, explain};
pub use report::{
    Activity, Actor, ActorKind, Also, Alternative, Baseline, Confidence, Finding, Grade, Group,
    Hop, Missing, Neighbour, Part, Pattern, Report, SCHEMA, Story, Target, Thing,
};

/// What to do about a mechanism, and about what the culprit did.
fn advice(_mechanism: &str, _root: &str) -> Vec<String> {
    Vec::new()
}
