use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Spools that are being queried or wait for it.
pub(super) const BACKLOG: usize = 2;

/// State shared by recorder and answers.
#[derive(Debug, Default)]
pub(super) struct Handover {
    pub(super) waiting: AtomicUsize,
    /// No further answers are needed.
    pub(super) is_over: AtomicBool,
}
