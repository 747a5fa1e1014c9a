//! How sentences show a point in time. The caller knows the zone.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use whyslow_model::Ns;

/// Shows points in time of a window: the time itself, and the start of the window, which is on the
/// day that need not be named.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn(Ns, Ns) -> String + Send + Sync>);

impl WallClock {
    /// Shows times with `show`.
    pub fn new(show: impl Fn(Ns, Ns) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    pub(crate) fn show(&self, ts: Ns, begin: Ns) -> String {
        (self.0)(ts, begin)
    }
}

impl Debug for WallClock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}
