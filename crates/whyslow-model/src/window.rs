//! The time range of a query.

use crate::Ns;

/// A half-open range of time, `begin <= t < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First nanosecond of the window.
    pub begin: Ns,
    /// First nanosecond after it.
    pub end: Ns,
}

// Called for every row. Functions of other crates are not inlined into a loop unless marked.
impl Window {
    /// All of time.
    pub const ALL: Window = Window {
        begin: i64::MIN,
        end: i64::MAX,
    };

    /// Accepts any two times; a window whose end is not after its start contains nothing.
    #[inline]
    pub fn new(begin: Ns, end: Ns) -> Self {
        Self { begin, end }
    }

    /// Whether a point in time is inside.
    #[inline]
    pub fn contains(&self, ts: Ns) -> bool {
        self.begin <= ts && ts < self.end
    }

    /// Whether an interval touches the window. An unfinished interval (`ts_end` None) extends to
    /// the end of the recording; an interval of zero length counts at its start.
    #[inline]
    pub fn overlaps(&self, ts: Ns, ts_end: Option<Ns>) -> bool {
        ts < self.end
            && ts_end.is_none_or(|end| end > self.begin || (end == ts && ts >= self.begin))
    }

    /// Length in ns; saturates for [`Window::ALL`].
    #[inline]
    pub fn length(&self) -> Ns {
        self.end.saturating_sub(self.begin)
    }
}
