//! Which kind of slowness many operations or requests show: load, one device, one operation, a
//! periodic job, or rare contention on a path that all of them share.
//!
//! Everything here is a function of slices; whoever has a recording fills an [`Input`]. Nothing is
//! taken for slow by mean and standard deviation, as one operation of 20 s among a hundred thousand
//! would decide. Operations that were slow together are one witness ([`episodes`]); each
//! test knows what it needs and says how much is lacking, and all significance levels are adjusted to
//! each other before [`judge`] draws its conclusion. `docs/patterns.md` has the rules of the
//! tests and the rates at which they find what they look for, and fire for nothing.

pub mod change;
pub mod concurrency;
pub mod constants;
mod decide;
pub mod episodes;
pub mod excess;
mod facts;
mod features;
pub mod fixed;
pub mod keys;
pub mod levels;
pub mod modes;
pub mod normal;
mod objects;
pub mod overlap;
pub mod periodic;
#[cfg(test)]
mod published;
mod ranks;
pub mod saturation;
mod say;
pub mod shifted;
#[cfg(test)]
mod simulation;
mod since;
mod words;

pub use decide::{Class, Judgement, judge};
pub use say::Outcome;

use whyslow_model::Ns;

/// An operation or request that nobody knows the object or worker of.
pub const NOBODY: u32 = u32::MAX;

/// Share of false findings among all, over all tests of one judgement.
pub const LEVEL: f64 = 0.01;

/// One operation or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// When it began, ns since the epoch.
    pub ts: Ns,
    /// ns, not negative.
    pub dur: Ns,
    /// Place among [`Input::keys`]: only items of one key are alike. An endpoint, or a kind of
    /// operation with its class of sizes.
    pub key: u32,
    /// Place among [`Input::objects`]: device, file, peer. [`NOBODY`] if there is none.
    pub object: u32,
    /// Place among [`Input::workers`]: thread or connection. [`NOBODY`] if that is not known.
    pub worker: u32,
    /// A failure that came soon tells nothing of what is usual; one that came late is slow.
    pub failed: bool,
    /// The longest single wait in it, where waits were recorded: known constants are looked for in
    /// these rather than in what the whole took beyond the usual.
    pub wait_ns_max: Option<Ns>,
}

impl Item {
    /// When it ended, ns since the epoch.
    pub fn end(&self) -> Ns {
        self.ts.saturating_add(self.dur)
    }
}

/// When something that has a limit was at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Name for sentences.
    pub name: String,
    /// Begin and end of times with utilisation above 0.9 and somebody waiting, or with more than a
    /// fifth of the time stalled; in order, apart from each other.
    pub saturated: Vec<(Ns, Ns)>,
    /// Share of the time of the baseline that it was so.
    pub baseline_share: Option<f64>,
}

/// Something that runs again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name for sentences.
    pub name: String,
    /// When it began to run, ascending.
    pub starts: Vec<Ns>,
}

/// Something that happened: a program executed, a deployment, a note of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When it happened, ns since the epoch.
    pub ts: Ns,
    /// Name for sentences.
    pub name: String,
}

/// What is to be judged. Only `items` is needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'a> {
    /// In any order.
    pub items: &'a [Item],
    /// What one of them is called: "request". "operation" if empty.
    pub what: &'a str,
    /// Begin and end of the recording or of the window; by the items if it is none.
    pub window: Option<(Ns, Ns)>,
    /// What is not slow by wish of whoever asks, ns.
    pub objective: Option<Ns>,
    /// Items of a time when all was well.
    pub baseline: &'a [Item],
    /// Names of keys.
    pub keys: &'a [String],
    /// Names of objects, such as devices.
    pub objects: &'a [String],
    /// Names of workers: threads, connections, clients.
    pub workers: &'a [String],
    /// Workers are those of load that waits for its answers: how many there are does not depend on how
    /// long items take.
    pub is_closed: bool,
    /// What objects are to be compared among: by object, its group (the driver of a device). One
    /// group if empty.
    pub groups: &'a [u32],
    /// Resources whose saturation is known.
    pub resources: &'a [Resource],
    /// Jobs that may explain a rhythm.
    pub jobs: &'a [Job],
    /// Events that may explain a change.
    pub marks: &'a [Mark],
    /// A key, and something that its items do: place among `feature_names`. System calls, peers,
    /// functions.
    pub features: &'a [(u32, u32)],
    /// Names of features.
    pub feature_names: &'a [String],
}

impl Input<'_> {
    /// Begin and end of what is looked at.
    fn span(&self) -> (Ns, Ns) {
        self.window.unwrap_or_else(|| {
            let begin = self.items.iter().map(|item| item.ts).min();
            let end = self.items.iter().map(Item::end).max();
            (begin.unwrap_or(0), end.unwrap_or(0))
        })
    }
}
