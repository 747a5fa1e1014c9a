//! CPU time accounting: user time of threads, their system calls, and interrupt handlers.
//!
//! Each nanosecond counts once, for the innermost: the time of a handler is not part of the system
//! call that it interrupts. Kernel threads are always in the kernel. Page faults and other
//! exceptions are not recorded, so their time counts as user time.
//!
//! Whether a thread was in the kernel at the start of the recording (or of its life) is known only
//! at its first entry or return: a return shows that the preceding time in the same slice was in
//! the kernel.

use whyslow_model::Ns;
use whyslow_model::event::IrqKind;

use super::identity::ThreadRef;

/// Whether threads are in a system call, by slot; `None` until the first entry or return.
#[derive(Debug, Default)]
pub(super) struct Inside(Vec<Option<bool>>);

impl Inside {
    /// A thread enters or leaves the kernel. Returns what was known before.
    pub(super) fn cross(&mut self, thread: &ThreadRef, inside: bool) -> Option<bool> {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, None);
        }
        self.0[thread.index()].replace(inside)
    }

    /// The slot may be reused for another thread.
    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        if let Some(inside) = self.0.get_mut(thread.index()) {
            *inside = None;
        }
    }

    pub(super) fn get(&self, thread: &ThreadRef) -> Option<bool> {
        self.0.get(thread.index()).copied().flatten()
    }
}

/// What a CPU is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    User,
    System,
    Hardirq,
    Softirq,
}

impl Mode {
    pub(super) fn of_handler(kind: IrqKind) -> Self {
        match kind {
            IrqKind::Soft => Mode::Softirq,
            // They run in the interrupt of the timer.
            IrqKind::Hard | IrqKind::Hrtimer | IrqKind::Ipi => Mode::Hardirq,
        }
    }
}

/// Time by mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spent {
    user: Ns,
    pub(super) system: Ns,
    pub(super) hardirq: Ns,
    pub(super) softirq: Ns,
}

/// Sums the time of a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    mode: Mode,
    since: Ns,
    spent: Spent,
}

impl Meter {
    pub(super) fn new(ts: Ns) -> Self {
        Self {
            mode: Mode::User,
            since: ts,
            spent: Spent::default(),
        }
    }

    /// Counts the time up to an event.
    pub(super) fn pass(&mut self, ts: Ns) {
        let spent = match self.mode {
            Mode::User => &mut self.spent.user,
            Mode::System => &mut self.spent.system,
            Mode::Hardirq => &mut self.spent.hardirq,
            Mode::Softirq => &mut self.spent.softirq,
        };
        *spent += (ts - self.since).max(0);
        self.since = self.since.max(ts);
    }

    pub(super) fn enter(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Time that was counted as user time was in the kernel.
    pub(super) fn was_inside(&mut self) {
        self.spent.system += std::mem::take(&mut self.spent.user);
    }

    /// Returns the time counted since the last call.
    pub(super) fn take(&mut self) -> Spent {
        std::mem::take(&mut self.spent)
    }
}
