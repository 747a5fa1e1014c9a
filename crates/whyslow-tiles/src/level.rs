//! Levels of cells: a cell of level L is 4^L ns long, counted from the start of the recording.

/// Lowest level of sums: cells of 256 ns.
pub(crate) const LOWEST: u8 = 4;
/// One cell for the whole recording.
pub(crate) const TOP: u8 = 26;
/// Mark of items that are never replaced by a sum.
pub(crate) const NEVER: u8 = TOP + 1;

/// The cell of a level that contains `at`.
#[inline]
pub(crate) fn cell_of(at: u64, level: u8) -> u64 {
    if level >= TOP { 0 } else { at >> (2 * level) }
}

/// Start of a cell.
#[inline]
pub(crate) fn begin_of(cell: u64, level: u8) -> u64 {
    if level >= TOP { 0 } else { cell << (2 * level) }
}

/// The lowest level at which one cell contains both times.
#[inline]
pub(crate) fn common(a: u64, b: u64) -> u8 {
    let bits = u64::BITS - (a ^ b).leading_zeros();
    (bits.div_ceil(2) as u8).clamp(LOWEST, TOP)
}

/// The lowest level at which one cell contains the interval.
#[inline]
pub(crate) fn home(begin: u64, end: u64) -> u8 {
    common(begin, end.saturating_sub(1).max(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_at_home_where_one_cell_holds_it() {
        let check = |begin, end, level| assert_eq!(home(begin, end), level, "{begin}..{end}");
        check(0, 0, 4);
        check(0, 256, 4);
        check(0, 257, 5);
        check(255, 257, 5);
        check(256, 512, 4);
        check(1023, 1025, 6);
        check(u64::MAX, u64::MAX, 4);
        check(0, u64::MAX, TOP);
        assert_eq!(cell_of(u64::MAX, TOP), 0);
        assert_eq!(begin_of(cell_of(1025, 5), 5), 1024);
    }
}
