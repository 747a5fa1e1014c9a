use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use whyslow_model::Ns;

/// A completed interval.
#[derive(Debug)]
pub struct Segment<'s> {
    /// Path of its recording, which is deleted after the answer.
    pub recording: &'s Path,
    /// Starting at 0.
    pub number: u64,
    /// Whether there are several intervals.
    pub is_part: bool,
    /// State shared by all intervals.
    pub shared: &'s Shared,
}

/// State shared by the answers of all intervals.
#[derive(Debug, Default)]
pub struct Shared {
    /// Notes that have been printed and are not repeated.
    pub noted: Mutex<BTreeSet<String>>,
    /// Origin of relative times.
    pub first: OnceLock<Ns>,
}
