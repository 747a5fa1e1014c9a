use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Spools that wait to be asked, or are.
pub(super) const BACKLOG: usize = 2;

/// How recorder and answers are together.
#[derive(Debug, Default)]
pub(super) struct Between {
    pub(super) waiting: AtomicUsize,
    /// Nobody wants further answers.
    pub(super) is_over: AtomicBool,
}
