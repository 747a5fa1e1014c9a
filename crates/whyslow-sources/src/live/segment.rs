use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use whyslow_model::Ns;

/// An interval that is over.
#[derive(Debug)]
pub struct Segment<'s> {
    /// Where its recording lies, until it is answered.
    pub recording: &'s Path,
    /// From 0 on.
    pub number: u64,
    /// Of several, or of as many as there will be.
    pub is_part: bool,
    /// What it shares with the other intervals.
    pub shared: &'s Shared,
}

/// What the answers of all intervals have in common.
#[derive(Debug, Default)]
pub struct Shared {
    /// What was said once needs not be said again.
    pub told: Mutex<BTreeSet<String>>,
    /// The moment that times count from.
    pub first: OnceLock<Ns>,
}
