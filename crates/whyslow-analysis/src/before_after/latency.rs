//! What a comparison needs of a request.

use whyslow_model::Ns;

/// Maximum number of distinct phases; of a source with more, the first.
pub(crate) const PHASES_MAX: usize = 8;

/// A request, reduced to what the comparison needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// Start, ns since the epoch.
    pub ts: Ns,
    /// In ns; `None` if it failed before anything could be measured.
    pub dur: Option<Ns>,
    /// Whether it counts as an error.
    pub failed: bool,
    /// The worker, which runs one request at a time; its requests may be correlated.
    pub worker: u32,
    /// In ns, by phase index.
    pub phases: [Ns; PHASES_MAX],
}
