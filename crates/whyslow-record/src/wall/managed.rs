//! Where frames of languages with a runtime of their own come in.
//!
//! A [`Walker`] is asked right after the native stack of a thread was walked, by the same thread of
//! the recorder, and before it is checked that the thread has not run meanwhile: so what it reads of a
//! thread that waits counts together with the native frames, or not at all. A thread that ran was copied
//! a while before: where it came to a CPU again since, a frame says that what called it is of later.
//!
//! To read another process may take as long as that wants it to, so each reader has walkers of its own.

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
    /// Stands for what is not known.
    pub(crate) fn instead(why: &str) -> Self {
        Self {
            function: why.as_bytes().to_vec(),
            file: Vec::new(),
            line: None,
        }
    }
}

/// Stands between native frames and those of the language that were read after the thread went on.
const LATER: &str = "(read after it went on)";

/// What a walker makes of a thread's native frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The native frame of this place in the stack stays.
    Native(usize),
    /// This takes the place of those that are left out.
    Managed(ManagedFrame),
}

/// Knows a runtime.
pub(crate) trait Walker: Send {
    /// The frames of a thread, innermost first, if the process is one of this runtime and the thread
    /// runs its code. `native` are the addresses of its program, innermost first. It reads the
    /// process's memory, and tells nothing rather than what may be wrong.
    fn walk(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Vec<Part>>;
}

/// Those of one reader of stacks.
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

    /// The frames with those of the runtime, which are numbers of texts. `went_on`: the thread has run
    /// since the native frames were taken.
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
        // Without native frames there are no two parts.
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

    /// Leaves so many native frames above one of its own.
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
            let mut texts = texts.lock().expect("nobody has it");
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
