//! Random numbers, the same on every machine, and the distributions of times.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Dice(u64);

impl Dice {
    /// Runs with different seeds have nothing in common.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x5851_F42D_4C95_7F2D)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1].
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn below(&mut self, sides: usize) -> usize {
        (self.next() % sides as u64) as usize
    }

    pub(super) fn happens(&mut self, chance: f64) -> bool {
        self.unit() <= chance
    }

    pub(super) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// How times vary, around 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Family {
    /// With this standard deviation of the logarithm.
    LogNormal(f64),
    Exponential,
    /// With this shape.
    Weibull(f64),
    /// With this exponent: 1 has no mean.
    Pareto(f64),
}

/// Narrow ones as of disks, and ones with longer and longer tails.
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
