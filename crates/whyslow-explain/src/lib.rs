//! Why an operation was slow, and what caused it: from a window of one thread to the thread,
//! request, device or lock that it waited for, with the evidence for each step.

mod across;
mod attribution;
mod blame;
mod blame_target;
mod blocks;
mod classify;
mod detectors;
mod finding;
mod group_excess;
mod holders;
mod limits;
mod mechanism;
mod network;
mod overlap;
mod pattern_verdict;
pub mod patterns;
mod query;
mod ranked;
mod report;
mod requests;
mod resolvers;
mod sampled;
mod sentence;
mod serial;
mod slow;
mod starved;
mod tracer;
mod trigger;
mod versus;
mod walk;
mod wall_clock;
mod window_slice;

pub use across::{OtherHost, explain_across};
pub use detectors::template_of;
pub use mechanism::{ALL as DESCRIBED_MECHANISMS, Mechanism, mechanism};
pub use query::{FINDINGS, Query, explain};
pub use report::{
    Activity, Actor, ActorKind, Also, Alternative, Baseline, ClockBounds, Confidence, Crossing,
    Difference, Excess, Finding, Grade, Group, Hop, MarkNote, Missing, Neighbour, Observation,
    Part, Pattern, Report, SCHEMA, Target, Thing, Versus,
};
pub use requests::requests_versus;
pub use trigger::Trigger;
pub use versus::Other;
pub use wall_clock::WallClock;

/// Advice on a mechanism, and on the culprit's own mechanism if that differs.
fn advice(mechanism: &str, root: &str) -> Vec<String> {
    let of = |id: &str| mechanism::mechanism(id).map_or(&[][..], |mechanism| mechanism.advice);
    let both = of(mechanism)
        .iter()
        .chain(if root == mechanism { &[] } else { of(root) });
    both.map(|advice| (*advice).to_owned()).collect()
}

// The tests use the crate's public name.
#[cfg(test)]
extern crate self as whyslow_explain;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
