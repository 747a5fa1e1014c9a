//! Times of profiles in units of their own, from a zero that may be the year 1970.

use whyslow_model::Ns;

/// Upper limit of times (the year 2096); the sum of two is still valid.
const TIME_MAX: i128 = 4_000_000_000_000_000_000;
/// Profiles are more recent than the year 2001; no machine has such an uptime.
const DATES_FROM: Ns = 1_000_000_000_000_000_000;
/// Clocks of two machines differ.
const LATER_MAX: Ns = 24 * 3600 * 1_000_000_000;

/// Converts a value in units of `scale` nanoseconds. For times since 1970 a plain product would be
/// off by hundreds of nanoseconds.
pub(super) fn ns(value: f64, scale: f64) -> Ns {
    let whole = value.trunc();
    // NaN becomes zero.
    let parts = ((value - whole) * scale).round() as i128;
    let ns = i128::from(whole as i64) * scale as i128 + parts;
    ns.clamp(0, TIME_MAX) as Ns
}

/// Offset of times from `begin` to `end` to wall-clock time, and whether they already are
/// wall-clock time. Other times are assumed to end when the file was written.
pub(super) fn shift((begin, end): (Ns, Ns), written: Option<Ns>) -> (Ns, bool) {
    let is_past = written.is_none_or(|written| end <= written.saturating_add(LATER_MAX));
    if begin >= DATES_FROM && begin <= end && is_past {
        return (0, true);
    }
    let shift = written.map_or(0, |written| written.saturating_sub(end));
    (shift, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_exact_and_bounded() {
        for (value, scale, expected) in [
            (1_621_401_187_223_005.5, 1e3, 1_621_401_187_223_005_500),
            (1_621_401_187.25, 1e9, 1_621_401_187_250_000_000),
            (5.3, 1e3, 5_300),
            (0.000_000_000_4, 1e9, 0),
            (-1.0, 1e3, 0),
            (f64::NAN, 1e3, 0),
            (f64::INFINITY, 1e9, TIME_MAX as Ns),
            (1e300, 1.0, TIME_MAX as Ns),
        ] {
            assert_eq!(ns(value, scale), expected, "{value}");
        }
    }

    #[test]
    fn dates_are_told_from_times_since_a_zero() {
        const YEAR: Ns = 365 * LATER_MAX;
        let written = 56 * YEAR;
        assert_eq!(shift((50 * YEAR, 51 * YEAR), Some(written)), (0, true));
        assert_eq!(shift((50 * YEAR, 51 * YEAR), None), (0, true));
        assert_eq!(shift((5, 7), Some(written)), (written - 7, false));
        assert_eq!(shift((5, 7), None), (0, false));
        // No sample has a time.
        assert_eq!(shift((Ns::MAX, 0), Some(written)), (written, false));
        let later = shift((50 * YEAR, 58 * YEAR), Some(written));
        assert_eq!(later, (-2 * YEAR, false));
    }
}
