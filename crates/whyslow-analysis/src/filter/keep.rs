//! The innermost loop of a filter.

/// Keeps the rows that pass without a branch: the outcome is hard to predict, and a misprediction
/// costs more than moving a number.
#[inline]
pub(super) fn keep(rows: &mut Vec<u32>, mut passes: impl FnMut(u32) -> bool) {
    let mut kept = 0;
    for place in 0..rows.len() {
        let row = rows[place];
        rows[kept] = row;
        kept += usize::from(passes(row));
    }
    rows.truncate(kept);
}
