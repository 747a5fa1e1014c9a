//! Distributions of times.

pub(super) use crate::statistics::Dice;

/// Distribution of times, around 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Family {
    /// Standard deviation of the logarithm.
    LogNormal(f64),
    Exponential,
    /// Shape.
    Weibull(f64),
    /// Exponent: 1 has no mean.
    Pareto(f64),
}

/// Narrow ones, as for disks, and ones with increasingly long tails.
pub(super) const FAMILIES: [Family; 6] = [
    Family::LogNormal(0.5),
    Family::LogNormal(0.8),
    Family::LogNormal(1.0),
    Family::Exponential,
    Family::Weibull(0.5),
    Family::Pareto(1.0),
];

impl Family {
    pub(super) fn draw(self, dice: &mut Dice) -> f64 {
        match self {
            Family::LogNormal(sigma) => (sigma * dice.normal()).exp(),
            Family::Exponential => dice.exponential(),
            Family::Weibull(shape) => dice.exponential().powf(1.0 / shape),
            Family::Pareto(exponent) => dice.unit().powf(-1.0 / exponent),
        }
    }

    /// Logarithm of the density of the logarithm of times, up to a constant.
    pub(super) fn ln_density(self, log: f64) -> f64 {
        match self {
            Family::LogNormal(sigma) => -0.5 * (log / sigma).powi(2),
            Family::Exponential => log - log.exp(),
            Family::Weibull(shape) => shape * log - (shape * log).exp(),
            Family::Pareto(_) if log < 0.0 => f64::NEG_INFINITY,
            Family::Pareto(exponent) => -exponent * log,
        }
    }
}
