//! Verdict of a comparison: better, worse, or no difference shown.
//!
//! The tests of a comparison are adjusted together, and intervals are not: an interval may exclude
//! no change although the tests together show none. Such a difference is possible, and is never
//! called none.

/// False positive rate over all tests of a comparison.
pub const LEVEL: f64 = 0.05;

/// What a comparison of two sets of requests shows, at the level [`LEVEL`] over all its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Some statistic is better, and none is worse.
    Better,
    /// Some statistic is worse, and none is better.
    Worse,
    /// One statistic is better and another one worse.
    Mixed,
    /// An interval excludes no change for the better, but the tests together do not show it.
    PossiblyBetter,
    /// An interval excludes no change for the worse, but the tests together do not show it.
    PossiblyWorse,
    /// Both are possible.
    Unclear,
    /// There is a change, but it is smaller than the smallest relevant one.
    Small,
    /// No difference was detected, which does not prove that there is none.
    #[default]
    NotShown,
    /// Too few requests for any test.
    TooFew,
}

/// Difference of a statistic, where positive is worse.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Difference {
    pub(crate) change: Option<f64>,
    /// 95 % interval of the change.
    pub(crate) interval: Option<(f64, f64)>,
    /// Adjusted.
    pub(crate) p: Option<f64>,
}

impl Verdict {
    /// Text for display, in lower case.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
            Self::PossiblyBetter => "possibly better",
            Self::PossiblyWorse => "possibly worse",
            Self::Unclear => "unclear",
            Self::Small => "smaller than --least",
            Self::NotShown => "no difference shown",
            Self::TooFew => "too few requests",
        }
    }

    /// The verdict for one statistic. Changes below `least` are irrelevant.
    pub(crate) fn of(found: Difference, least: f64) -> Self {
        let Some(change) = found.change else {
            return Self::TooFew;
        };
        let is_tested = found.p.is_some_and(|p| p <= LEVEL);
        let excludes_none = found
            .interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        match (is_tested, excludes_none, change.abs() >= least) {
            (true, _, true) if change > 0.0 => Self::Worse,
            (true, _, true) => Self::Better,
            (false, true, true) if change > 0.0 => Self::PossiblyWorse,
            (false, true, true) => Self::PossiblyBetter,
            (true, _, false) | (_, true, false) => Self::Small,
            (false, false, _) if found.p.is_some() => Self::NotShown,
            (false, false, _) => Self::TooFew,
        }
    }

    /// How much it shows.
    fn rank(self) -> u8 {
        match self {
            Self::TooFew => 0,
            Self::NotShown => 1,
            Self::Small => 2,
            Self::PossiblyBetter | Self::PossiblyWorse | Self::Unclear => 3,
            Self::Better | Self::Worse | Self::Mixed => 4,
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match self.rank().cmp(&other.rank()) {
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Equal if self == other => self,
            std::cmp::Ordering::Equal if self.rank() == Self::Mixed.rank() => Self::Mixed,
            std::cmp::Ordering::Equal => Self::Unclear,
        }
    }

    /// Whether it shows a difference, at the level over all tests.
    #[cfg(test)]
    pub(crate) fn is_shown(self) -> bool {
        self.rank() == Self::Mixed.rank()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_never_none_beside_an_interval_that_excludes_no_change() {
        let of = |change: f64, low: f64, high: f64, p: f64| {
            let found = Difference {
                change: Some(change),
                interval: Some((low, high)),
                p: Some(p),
            };
            Verdict::of(found, 0.02)
        };
        assert_eq!(of(-0.7, -1.2, -0.3, 0.001), Verdict::Better);
        assert_eq!(of(-0.7, -1.2, -0.3, 0.09), Verdict::PossiblyBetter);
        assert_eq!(of(0.7, 0.3, 1.2, 0.09), Verdict::PossiblyWorse);
        assert_eq!(of(0.7, -0.3, 1.2, 0.09), Verdict::NotShown);
        assert_eq!(of(0.01, 0.005, 0.015, 0.001), Verdict::Small);
        assert_eq!(of(0.01, 0.005, 0.015, 0.09), Verdict::Small);
        assert_eq!(Verdict::of(Difference::default(), 0.02), Verdict::TooFew);
    }

    #[test]
    fn verdicts_are_combined_by_how_much_they_show() {
        use Verdict::{
            Better, Mixed, NotShown, PossiblyBetter, PossiblyWorse, TooFew, Unclear, Worse,
        };
        assert_eq!(TooFew.and(NotShown), NotShown);
        assert_eq!(PossiblyBetter.and(Worse), Worse);
        assert_eq!(PossiblyBetter.and(PossiblyWorse), Unclear);
        assert_eq!(NotShown.and(PossiblyBetter), PossiblyBetter);
        assert_eq!(Better.and(Worse).and(Better), Mixed);
    }
}
