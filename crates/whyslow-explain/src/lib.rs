//! Why an operation was slow, and what caused it: from a window of one thread to the thread,
//! request, device or lock that it waited for, with the evidence for each step.

mod across;
mod addresses;
mod advice;
mod attempts;
mod attribution;
mod blame;
mod blame_target;
mod blocks;
mod brief;
mod classify;
mod connecting;
mod contention;
mod detectors;
mod finding;
mod frozen;
mod group_excess;
mod holders;
mod judged;
mod late;
mod levels;
mod limits;
mod lost;
mod machine;
mod mechanism;
mod middlemen;
mod network;
mod occupied;
mod overlap;
mod page;
mod pattern_verdict;
pub mod patterns;
mod peers;
mod polling;
mod query;
mod ranked;
mod report;
mod requests;
mod resolvers;
mod sampled;
mod sentence;
mod serial;
mod several;
mod slow;
mod spawners;
mod stacked;
mod stalls;
mod starved;
mod steal;
mod tracer;
mod trigger;
mod versus;
mod victims;
mod wait_kind;
mod walk;
mod wall_clock;
mod window_slice;

pub use across::{OtherHost, explain_across};
pub use advice::{AdviceRule, Applies};
pub use detectors::template_of;
pub use mechanism::{ALL as DESCRIBED_MECHANISMS, Mechanism, mechanism};
pub use page::{
    Advice, AdviceKind, Page, Resource, ResourceState, Role, TIMELINE_ROWS_MAX, TimelineRow,
    Victim, mechanism_noun,
};
pub use query::{FINDINGS, Query, explain};
pub use report::{
    Activity, Actor, ActorKind, Also, Alternative, Baseline, ClockBounds, Confidence, Contention,
    Crossing, Did, Difference, Excess, Finding, Grade, Group, Hop, Judged, MarkNote, Missing,
    Neighbour, Observation, Part, Pattern, Reason, Report, SCHEMA, Target, Thing, Versus,
};
pub use requests::requests_versus;
pub use trigger::Trigger;
pub use versus::Other;
pub use victims::victims;
pub use wall_clock::WallClock;

// The tests use the crate's public name.
#[cfg(test)]
extern crate self as whyslow_explain;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
