//! Why an operation was slow, and who did it: from a window of one thread to the thread, request,
//! device or lock that it waited for, with the evidence for each step.

pub mod patterns;
mod report;

pub use report::{
    Activity, Actor, ActorKind, Alternative, Baseline, Confidence, Finding, Grade, Group, Hop,
    Missing, Neighbour, Part, Pattern, Report, SCHEMA, Story, Target, Thing,
};
