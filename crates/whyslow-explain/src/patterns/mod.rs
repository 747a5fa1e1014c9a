//! Which kind of slowness many operations or requests show: load, one device, one operation, a
//! periodic job, or rare contention on a path that all of them share.
//!
//! All functions work on slices; the caller fills an [`Input`] from a recording. Mean and standard
//! deviation are not used to decide what is slow, because one operation of 20 s among a hundred
//! thousand would dominate them. Operations that were slow together count as one ([`episodes`]).
//! Each test checks whether it has enough data and reports how much is missing. All significance
//! levels are adjusted together before [`judge`] draws its conclusion. `docs/patterns.md` has the
//! rules of the tests and their detection and false-positive rates.

pub mod change;
pub mod concurrency;
pub mod constants;
mod decide;
pub mod episodes;
pub mod excess;
mod facts;
mod features;
pub mod fixed;
mod format;
pub mod keys;
pub mod levels;
pub mod modes;
pub mod normal;
mod objects;
mod outcomes;
pub mod overlap;
pub mod periodic;
#[cfg(test)]
mod published;
mod ranks;
pub mod saturation;
pub mod shifted;
#[cfg(test)]
mod simulation;
mod since;

pub use decide::{Class, Judgement, judge};
pub use outcomes::Outcome;

use whyslow_model::Ns;

use crate::wall_clock::WallClock;

/// Object or worker of an operation or request if it is not known.
pub const UNIDENTIFIED: u32 = u32::MAX;

/// False discovery rate over all tests of one judgement.
pub const LEVEL: f64 = 0.01;

/// One operation or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Start, ns since the epoch.
    pub ts: Ns,
    /// Duration in ns, not negative.
    pub dur: Ns,
    /// Index into [`Input::keys`]: only items of one key are comparable. An endpoint, or a kind of
    /// operation with its size class.
    pub key: u32,
    /// Index into [`Input::objects`]: device, file, peer. [`UNIDENTIFIED`] if there is none.
    pub object: u32,
    /// Index into [`Input::workers`]: thread or connection. [`UNIDENTIFIED`] if it is not known.
    pub worker: u32,
    /// An early failure is neither usual nor slow; a late one is slow.
    pub failed: bool,
    /// Class of the result, such as that of a status code: only items of one key with the same
    /// result show what is usual for each other.
    pub result: u32,
    /// The longest single wait in it, if waits were recorded: known constants are searched for in
    /// these rather than in the time beyond the usual.
    pub wait_ns_max: Option<Ns>,
}

impl Item {
    /// End, ns since the epoch.
    pub fn end(&self) -> Ns {
        self.ts.saturating_add(self.dur)
    }
}

/// A limited resource, and when it was saturated.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Name for sentences.
    pub name: String,
    /// Start and end of times with utilisation above 0.9 and a waiter, or with more than a fifth of
    /// the time stalled; in order, without overlap.
    pub saturated: Vec<(Ns, Ns)>,
    /// Saturated share of the time of the baseline.
    pub baseline_share: Option<f64>,
}

/// Something that runs repeatedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name for sentences.
    pub name: String,
    /// Start times, ascending.
    pub starts: Vec<Ns>,
}

/// An event: a program start, a deployment, a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When it happened, ns since the epoch.
    pub ts: Ns,
    /// Name for sentences.
    pub name: String,
}

/// Input of [`judge`]. Only `items` is required.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'a> {
    /// In any order.
    pub items: &'a [Item],
    /// Name of an item: "request". "operation" if empty.
    pub what: &'a str,
    /// Start and end of the recording or window; `None` for those of the items.
    pub window: Option<(Ns, Ns)>,
    /// Shows points in time; `None`: as time since the start of the window.
    pub clock: Option<&'a WallClock>,
    /// Duration up to which an item is never slow, ns.
    pub objective: Option<Ns>,
    /// Items of a time without problems.
    pub baseline: &'a [Item],
    /// Names of keys.
    pub keys: &'a [String],
    /// Names of objects, such as devices.
    pub objects: &'a [String],
    /// Names of workers: threads, connections, clients.
    pub workers: &'a [String],
    /// The workers belong to a closed-loop load, which waits for replies: their number does not
    /// depend on the durations of items.
    pub is_closed: bool,
    /// Group of each object within which it is compared (the driver of a device). One group if
    /// empty.
    pub groups: &'a [u32],
    /// Resources with known saturation.
    pub resources: &'a [Resource],
    /// Jobs that may explain a rhythm.
    pub jobs: &'a [Job],
    /// Events that may explain a change.
    pub marks: &'a [Mark],
    /// Pairs of a key and a feature of its items, as an index into `feature_names`: system calls,
    /// peers, functions.
    pub features: &'a [(u32, u32)],
    /// Names of features.
    pub feature_names: &'a [String],
}

impl Input<'_> {
    /// A point in time for sentences.
    fn moment(&self, ts: Ns) -> String {
        let begin = self.span().0;
        self.clock
            .map_or_else(|| format::after(ts, begin), |clock| clock.show(ts, begin))
    }

    /// Start and end of the examined time.
    fn span(&self) -> (Ns, Ns) {
        self.window.unwrap_or_else(|| {
            let begin = self.items.iter().map(|item| item.ts).min();
            let end = self.items.iter().map(Item::end).max();
            (begin.unwrap_or(0), end.unwrap_or(0))
        })
    }
}
