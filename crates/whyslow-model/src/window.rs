//! The one time range that every question has.

use crate::Ns;

/// A half-open range of time, `begin <= t < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First nanosecond of the window.
    pub begin: Ns,
    /// First nanosecond after it.
    pub end: Ns,
}

// Asked for every row, and code of another crate is not put into a loop unless it says so.
impl Window {
    /// All times there are.
    pub const ALL: Window = Window {
        begin: i64::MIN,
        end: i64::MAX,
    };

    /// Any two times; a window whose end is not after its beginning contains nothing.
    #[inline]
    pub fn new(begin: Ns, end: Ns) -> Self {
        Self { begin, end }
    }

    /// Whether a point in time is inside.
    #[inline]
    pub fn contains(&self, ts: Ns) -> bool {
        self.begin <= ts && ts < self.end
    }

    /// Whether an interval touches the window. An unfinished interval (`ts_end` None) reaches to
    /// the end of the recording; one of zero length counts where it begins.
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
