//! Infers the holder of a contended lock from profiles.
//!
//! A profile shows that a thread waited, by an event of its runtime or by a stack that ends in lock
//! code, and at best which lock; it rarely shows the holder. The holder is inferred: another thread
//! was in code of the same class during the wait, in a frame other than its innermost one, or was
//! the previous owner of the lock. Each result has a [`Confidence`].

mod evidence;
mod hold;
mod stacks;
mod wait;

use std::sync::Arc;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::Profile;
use super::gaps::Gaps;

/// Kinds of user-space locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// Monitor of an object of the runtime: `synchronized`.
    Monitor,
    /// Lock of a library of the runtime: `ReentrantLock`.
    Library,
    /// Lock of the C library.
    Pthread,
}

impl LockKind {
    /// Value of the column `lock_wait.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Library => "library_lock",
            Self::Pthread => "pthread",
        }
    }
}

/// Evidence for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitSource {
    /// Reported by the runtime, with start and end.
    Event,
    /// Stack samples; start and end are as precise as the sampling interval.
    Samples,
    /// Thread dumps; the wait lasted at least from the first dump that shows it to the last.
    Dump,
}

impl WaitSource {
    /// Value of the column `lock_wait.reported_by`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Samples => "samples",
            Self::Dump => "dump",
        }
    }
}

/// Confidence in a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It was in code of the same class.
    Low,
    /// It was in the same method, or was the only thread there for nearly all of the wait.
    Medium,
    /// The runtime reported the lock and its new owner, and samples do not contradict it.
    High,
}

impl Confidence {
    /// Value of the column `lock_wait.confidence`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A wait of a thread for a lock.
#[derive(Debug, Clone, PartialEq)]
pub struct LockWait {
    /// Start of the wait, or the first time it was seen.
    pub ts: Ns,
    /// End of the wait, or the last time it was seen.
    pub ts_end: Ns,
    /// Waiting thread: index in [`Profile::threads`].
    pub thread: u32,
    /// Kind of the lock.
    pub kind: LockKind,
    /// Evidence for the wait.
    pub reported_by: WaitSource,
    /// Stack of the waiting thread.
    pub stack: u32,
    /// Frame that requested the lock.
    pub frame: u32,
    /// Address of the lock; `None` if the profile does not contain it.
    pub address: Option<u64>,
    /// Class of the lock, otherwise class of the code that requested it.
    pub object: Arc<str>,
    /// `None` if no thread can be identified.
    pub holder: Option<Holder>,
}

impl LockWait {
    /// Length in ns.
    pub fn dur(&self) -> Ns {
        self.ts_end - self.ts
    }
}

/// The thread that held the lock for most of a wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Holder {
    /// Index in [`Profile::threads`].
    pub thread: u32,
    /// Part of the wait during which it held the lock.
    pub held: Ns,
    /// Confidence.
    pub confidence: Confidence,
    /// Stack in which it spent most of that time; [`super::NO_STACK`] if unknown.
    pub stack: u32,
    /// Its sampling gap during the wait: index in [`Gaps::gaps`].
    pub gap: Option<u32>,
}

/// Returns the index of the frame that called a lock's acquire, if the stack parks in one.
pub fn acquires(profile: &Profile, stack: u32) -> Option<usize> {
    stacks::acquire(profile, stack)
}

/// Lock waits, sorted by end.
pub fn find(profile: &Profile, gaps: &Gaps) -> Vec<LockWait> {
    let stacks = stacks::Stacks::of(profile);
    let waits = wait::find(profile, gaps, &stacks);
    if waits.is_empty() {
        return Vec::new();
    }
    let mut waits = hold::find(profile, gaps, &stacks, waits);
    waits.index_sort_by_ints(|wait| [wait.ts_end, wait.ts, i64::from(wait.thread)]);
    waits
}

#[cfg(test)]
mod tests;
