//! Verdict of a comparison: better, worse, or no difference shown.

use super::{Comparison, LEVEL};

/// What a comparison of two sets of requests shows, at the level [`LEVEL`] over all its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Some statistic is better, and none is worse.
    Better,
    /// Some statistic is worse, and none is better.
    Worse,
    /// One statistic is better and another one worse.
    Mixed,
    /// No difference was detected, which does not prove that there is none.
    #[default]
    NotShown,
    /// Too few requests for any test.
    TooFew,
}

impl Verdict {
    /// Text for display, in lower case.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Mixed => "mixed",
            Self::NotShown => "no difference shown",
            Self::TooFew => "too few requests",
        }
    }

    /// The verdict for a change, where positive is worse, with its adjusted p. Changes up to
    /// `least` are irrelevant.
    pub(crate) fn of(change: Option<f64>, p: Option<f64>, least: f64) -> Self {
        match (change, p) {
            (Some(change), Some(p)) if p <= LEVEL && change.abs() >= least => {
                if change > 0.0 {
                    Self::Worse
                } else {
                    Self::Better
                }
            }
            (Some(_), Some(_)) => Self::NotShown,
            _ => Self::TooFew,
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::TooFew, other) | (other, Self::TooFew) => other,
            (Self::NotShown, other) | (other, Self::NotShown) => other,
            (one, other) if one == other => one,
            _ => Self::Mixed,
        }
    }
}

impl Comparison {
    /// The verdict over all statistics, with adjusted p values.
    pub(crate) fn verdict(&self, least: f64) -> Verdict {
        let quantiles = self.quantiles.iter().map(|one| {
            let change = one.ratio.map(|ratio| ratio - 1.0);
            Verdict::of(change, one.p, least)
        });
        let shares = self.over.iter().chain([&self.failed]);
        let shares = shares.map(|one| Verdict::of(Some(one.after - one.before), one.p, 0.0));
        quantiles.chain(shares).fold(Verdict::TooFew, Verdict::and)
    }
}
