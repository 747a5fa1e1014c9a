//! Merges the frames of language runtimes into native stacks.
//!
//! A [`Walker`] runs right after the native stack of a thread was unwound, in the same thread of
//! the recorder, and before the check that the thread has not run meanwhile: so what it reads of a
//! waiting thread is valid together with the native frames, or not at all. The stack of a running
//! thread was copied a while before: if the thread has run since, a frame marks the callers as more
//! recent.
//!
//! Reading another process can block for as long as that process likes, so each reader has walkers
//! of its own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::texts::Texts;

/// A function of such a language.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ManagedFrame {
    pub(crate) function: Vec<u8>,
    pub(crate) file: Vec<u8>,
    pub(crate) line: Option<i32>,
}

impl ManagedFrame {
    /// A placeholder.
    pub(crate) fn instead(why: &str) -> Self {
        Self {
            function: why.as_bytes().to_vec(),
            file: Vec::new(),
            line: None,
        }
    }
}

/// Separates native frames from those of the language, if these were read after the thread
/// continued.
const LATER: &str = "(read after the thread continued)";

/// A frame in the output of a walker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The native frame with this index stays.
    Native(usize),
    /// Replaces the native frames that are left out.
    Managed(ManagedFrame),
}

/// Reads the stacks of one runtime.
pub(crate) trait Walker: Send {
    /// The frames of a thread, innermost first, if the process uses this runtime and the thread
    /// runs its code. `native` are the addresses of its native frames, innermost first. Reads the
    /// process's memory, and returns `None` rather than wrong frames.
    fn walk(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Vec<Part>>;
}

/// The walkers of one stack reader.
pub(super) struct Walkers {
    walkers: Vec<Box<dyn Walker>>,
    texts: Arc<Mutex<Texts>>,
}

impl fmt::Debug for Walkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walkers")
    }
}

impl Walkers {
    pub(super) fn new(walkers: Vec<Box<dyn Walker>>, texts: Arc<Mutex<Texts>>) -> Self {
        Self { walkers, texts }
    }

    /// The stack with the frames of the runtime, which are text numbers. `went_on`: whether the
    /// thread has run since the native frames were taken.
    pub(super) fn merge(
        &mut self,
        (pid, tid): (i32, i32),
        native: Vec<u64>,
        went_on: impl FnOnce() -> bool,
    ) -> Vec<u64> {
        let mut walkers = self.walkers.iter_mut();
        let found = walkers.find_map(|walker| walker.walk(pid, tid, &native));
        let Some(mut parts) = found else {
            return native;
        };
        let is_managed = |part: &Part| matches!(part, Part::Managed(_));
        let border = parts.iter().position(is_managed).unwrap_or(parts.len());
        // Without native frames there is nothing to separate.
        if border > 0 && went_on() {
            parts.insert(border, Part::Managed(ManagedFrame::instead(LATER)));
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts.into_iter();
        let frame = |part| match part {
            Part::Native(place) => native.get(place).copied(),
            Part::Managed(frame) => Some(texts.managed(pid, frame)),
        };
        parts.filter_map(frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps this number of native frames above one of its own.
    struct One(usize);

    impl Walker for One {
        fn walk(&mut self, _: i32, _: i32, _: &[u64]) -> Option<Vec<Part>> {
            let own = Part::Managed(ManagedFrame::instead("own"));
            Some((0..self.0).map(Part::Native).chain([own]).collect())
        }
    }

    #[test]
    fn what_is_of_two_moments_says_so() {
        let check = |native, went_on, expected: &[&str]| {
            let texts = Arc::<Mutex<Texts>>::default();
            let mut walkers = Walkers::new(vec![Box::new(One(native))], Arc::clone(&texts));
            let frames = walkers.merge((7, 8), vec![16, 32, 48], || went_on);
            let mut texts = texts.lock().expect("not poisoned");
            let numbers = expected.iter().map(|name| match name.parse() {
                Ok(address) => address,
                Err(_) => texts.managed(7, ManagedFrame::instead(name)),
            });
            assert_eq!(frames, numbers.collect::<Vec<u64>>());
        };
        check(2, false, &["16", "32", "own"]);
        check(2, true, &["16", "32", LATER, "own"]);
        check(0, true, &["own"]);
    }
}
