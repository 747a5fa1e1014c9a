//! How a CPU spends its time: in threads outside of the kernel, in their system calls, and in
//! interrupt handlers.
//!
//! Each moment counts once, to the innermost: a handler's time is not that of the system call it
//! interrupts. Kernel threads are always inside the kernel. Page faults and other exceptions are
//! not told by the events read, so their time counts as spent outside.
//!
//! Whether a thread was inside the kernel when the recording (or its life) began shows only at its
//! first entry or return: a return tells that the time before it in the same slice was inside.

use whyslow_model::Ns;
use whyslow_model::event::IrqKind;

use super::identity::ThreadRef;

/// Which threads are inside a system call, by slot; null until an entry or return told.
#[derive(Debug, Default)]
pub(super) struct Inside(Vec<Option<bool>>);

impl Inside {
    /// A thread enters or leaves the kernel; what was known of it before.
    pub(super) fn cross(&mut self, thread: &ThreadRef, inside: bool) -> Option<bool> {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, None);
        }
        self.0[thread.index()].replace(inside)
    }

    /// The slot may go to another thread.
    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        if let Some(inside) = self.0.get_mut(thread.index()) {
            *inside = None;
        }
    }

    pub(super) fn get(&self, thread: &ThreadRef) -> Option<bool> {
        self.0.get(thread.index()).copied().flatten()
    }
}

/// What a CPU does at a moment.
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

/// Adds up the time of one CPU.
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

    /// What was taken for time outside of the kernel was inside.
    pub(super) fn was_inside(&mut self) {
        self.spent.system += std::mem::take(&mut self.spent.user);
    }

    /// What was counted since the last time this was asked.
    pub(super) fn take(&mut self) -> Spent {
        std::mem::take(&mut self.spent)
    }
}
