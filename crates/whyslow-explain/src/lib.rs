//! Why an operation was slow, and who did it: from a window of one thread to the thread, request,
//! device or lock that it waited for, with the evidence for each step.

mod across;
mod ask;
mod behalf;
mod blame;
mod blocks;
mod classify;
mod detectors;
mod holders;
mod judged;
mod leaf;
mod limits;
mod many;
mod moment;
mod network;
mod overlap;
pub mod patterns;
mod ranked;
mod report;
mod requests;
mod resolvers;
mod sampled;
mod say;
mod serial;
mod slow;
mod starved;
mod story;
mod tracer;
mod versus;
mod walk;
mod why;

pub use across::{OtherHost, explain_across};
pub use ask::{Question, STORIES, explain};
pub use detectors::template_of;
pub use report::{
    Activity, Actor, ActorKind, Also, Alternative, Baseline, ClockBounds, Confidence, Crossing,
    Difference, Excess, Finding, Grade, Group, Hop, Missing, Neighbour, Part, Pattern, Report,
    SCHEMA, Story, Target, Thing, Versus,
};
pub use requests::requests_versus;
pub use versus::Other;
pub use why::{ALL as MECHANISMS_TOLD, Mechanism, why};

/// What to do about a mechanism, and about what the culprit did.
fn advice(mechanism: &str, root: &str) -> Vec<String> {
    let of = |id: &str| why::why(id).map_or(&[][..], |mechanism| mechanism.advice);
    let both = of(mechanism)
        .iter()
        .chain(if root == mechanism { &[] } else { of(root) });
    both.map(|advice| (*advice).to_owned()).collect()
}

// The tests name the crate as its users do.
#[cfg(test)]
extern crate self as whyslow_explain;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
