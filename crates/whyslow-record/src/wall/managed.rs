//! Where frames of languages with a runtime of their own come in.
//!
//! A [`Walker`] is asked right after the native stack of a thread was walked, by the same thread of
//! the recorder, and before it is checked that the thread has not run meanwhile: so what it reads of a
//! thread that waits counts together with the native frames, or not at all.

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

#[allow(dead_code)] // walkers make them
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
    /// process's memory, never waits, and tells nothing rather than what may be wrong.
    fn walk(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Vec<Part>>;
}

/// Those that there are; each reader of stacks has them.
#[derive(Clone)]
pub(super) struct Walkers {
    walkers: Arc<Mutex<Vec<Box<dyn Walker>>>>,
    texts: Arc<Mutex<Texts>>,
}

impl fmt::Debug for Walkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walkers")
    }
}

impl Walkers {
    pub(super) fn new(walkers: Vec<Box<dyn Walker>>, texts: Arc<Mutex<Texts>>) -> Self {
        Self {
            walkers: Arc::new(Mutex::new(walkers)),
            texts,
        }
    }

    /// The frames with those of the runtime, which are numbers of texts.
    pub(super) fn merge(&self, pid: i32, tid: i32, native: Vec<u64>) -> Vec<u64> {
        let mut walkers = self.walkers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = walkers
            .iter_mut()
            .find_map(|walker| walker.walk(pid, tid, &native));
        let Some(parts) = found else {
            return native;
        };
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts.into_iter();
        let frame = |part| match part {
            Part::Native(place) => native.get(place).copied(),
            Part::Managed(frame) => texts.managed(frame),
        };
        parts.filter_map(frame).collect()
    }
}
