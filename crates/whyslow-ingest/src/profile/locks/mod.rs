//! Who held the lock that a thread waited for, from what profiles show of both.
//!
//! A profile says of a thread that it waited, by the event of its runtime or by a stack that ends in the code of
//! a lock, and at best which lock; hardly ever who held it. That is inferred: another thread was in code of the
//! same class meanwhile, further out than its innermost frame, or had got the lock last before. How sure that is
//! is said with each: [`Confidence`].

mod evidence;
mod hold;
mod stacks;
mod wait;

use std::sync::Arc;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::Profile;
use super::gaps::Gaps;

/// Kinds of locks of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// Of an object of the runtime: `synchronized`.
    Monitor,
    /// Of a library of the runtime: `ReentrantLock`.
    Library,
    /// Of the C library.
    Pthread,
}

impl LockKind {
    /// As the column `lock_wait.kind` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Library => "library_lock",
            Self::Pthread => "pthread",
        }
    }
}

/// By what a wait is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Teller {
    /// The runtime told of it, with begin and end.
    Event,
    /// Samples of its stack; begin and end are as exact as the interval between them.
    Samples,
    /// Dumps of all threads; the wait lasted at least from the first that shows it to the last.
    Dump,
}

impl Teller {
    /// As the column `lock_wait.told_by` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Samples => "samples",
            Self::Dump => "dump",
        }
    }
}

/// How sure a holder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It was in code of the same class.
    Low,
    /// It was in the same method, or there for nearly all of the wait, and nobody else was.
    Medium,
    /// The runtime told which lock it is and who had got it, and samples do not contradict.
    High,
}

impl Confidence {
    /// As the column `lock_wait.confidence` has it.
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
    /// When the wait began, or was first seen.
    pub ts: Ns,
    /// When it ended, or was last seen.
    pub ts_end: Ns,
    /// Waiting thread, in [`Profile::threads`].
    pub thread: u32,
    /// Kind of the lock.
    pub kind: LockKind,
    /// By what the wait is known.
    pub told_by: Teller,
    /// Stack of the waiting thread.
    pub stack: u32,
    /// Frame that wanted the lock.
    pub frame: u32,
    /// Address of the lock; `None` if the profile does not have it.
    pub address: Option<u64>,
    /// Class of the lock, else that of the code which wanted it.
    pub object: Arc<str>,
    /// `None` if no thread can be named.
    pub holder: Option<Holder>,
}

impl LockWait {
    /// Length in ns.
    pub fn dur(&self) -> Ns {
        self.ts_end - self.ts
    }
}

/// Who held the lock for most of a wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Holder {
    /// Thread, in [`Profile::threads`].
    pub thread: u32,
    /// How much of the wait.
    pub held: Ns,
    /// How sure that is.
    pub confidence: Confidence,
    /// Stack that it had for most of that; [`super::NO_STACK`] if none is known.
    pub stack: u32,
    /// Time of it without samples meanwhile, in [`Gaps::gaps`].
    pub gap: Option<u32>,
}

/// Place of the frame that called a lock's acquire, if a stack parks in one.
pub fn acquires(profile: &Profile, stack: u32) -> Option<usize> {
    stacks::acquire(profile, stack)
}

/// Waits for locks, in order of their end.
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
