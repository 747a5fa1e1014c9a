//! The data of a page. Text, Markdown, HTML and the browser show the same sentences.

use serde::Serialize;
use whyslow_model::Ns;

use crate::report::Actor;

/// Sentences and bars of one finding.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Page {
    /// The cause, with the culprit as its subject.
    pub why: String,
    /// The operations that were slow because of it.
    pub who: String,
    /// The same as data, the explained operation first.
    pub victims: Vec<Victim>,
    /// The confidence, and what it is based on.
    pub sure: String,
    /// At most [`crate::TIMELINE_ROWS_MAX`] bars for one time axis, the culprit first.
    pub timeline: Vec<TimelineRow>,
    /// When the activity of the culprit ended, or else the operation; null if it was still in
    /// progress at the end of the recording.
    pub ended_ns: Option<Ns>,
    /// What to do, in the order `now`, `fix`, `next`.
    pub advice: Vec<Advice>,
}

/// Slow operations of one kind with the same culprit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Victim {
    /// The slow thread.
    pub actor: Actor,
    /// The operation: `openat()`, `request 17 GET /`.
    pub what: String,
    /// Number of slow operations.
    pub count: u64,
    /// Number of all such operations; null if it is not known.
    pub of: Option<u64>,
    /// Duration of the longest in ns.
    pub dur_ns_max: Ns,
    /// Median duration in ns; null if there are too few to know it.
    pub usual_ns: Option<Ns>,
    /// Id of the longest for other commands: `op:17`.
    pub id: Option<String>,
}

/// What a bar of the drawing stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The activity of the culprit.
    Culprit,
    /// A thread that waited for the culprit, and that a victim waited for.
    Between,
    /// A slow operation.
    Victim,
}

/// A bar of the drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineRow {
    /// What it stands for.
    pub role: Role,
    /// Name of the thread, device or host.
    pub label: String,
    /// What it did: `syncfs(/srv/backup)`; may be empty.
    pub what: String,
    /// When it began.
    pub begin_ns: Ns,
    /// When it ended; the end of the recording if it was still in progress.
    pub end_ns: Ns,
    /// Which ends lie outside of the recording: begin, end, both.
    pub cut: Option<&'static str>,
    /// Id for other commands: `op:17`.
    pub id: Option<String>,
}

/// When an advice applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdviceKind {
    /// At once, while it happens.
    Now,
    /// A lasting remedy.
    Fix,
    /// What to look at next.
    Next,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// When it applies.
    pub kind: AdviceKind,
    /// The advice, without the command.
    pub text: String,
    /// A command to paste.
    pub command: Option<String>,
}

/// Verdict on a resource of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceState {
    /// Used, and neither saturated nor slow.
    Fine,
    /// Saturated or slow.
    High,
    /// Recorded, but not used.
    NoneHappened,
    /// Not recorded, or the source does not state whether it was.
    NotRecorded,
}

/// A resource of the machine, independent of the findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// cpu, disk, memory, network.
    pub topic: &'static str,
    /// The verdict.
    pub state: ResourceState,
    /// `CPU 15 %`, `vda p99 5.00 ms`.
    pub summary: String,
    /// Option of `whyslow record` that records it; null unless it is not recorded.
    pub record_with: Option<&'static str>,
}
