//! T4–T6: whether one key is slow, all keys are equally slow, or one is never slow.
//!
//! All three test the keys' rates of slow items. If slow items come in bursts, counts are divided
//! by the design effect.

use std::collections::BTreeMap;

use whyslow_analysis::statistics::{chi_square_tail, hypergeometric_tail};

use super::LEVEL;

/// Minimum number of independent slow items to distinguish one key with most of them from chance.
pub const SLOW_MIN: f64 = 10.0;
/// Minimum number of keys for evenness to be meaningful.
pub const KEYS_MIN: usize = 4;
const RISK_MIN: f64 = 5.0;
const HOLDS_MIN: f64 = 0.8;
/// Keys with a smaller expected number of slow items are pooled.
const EXPECTED_MIN: f64 = 1.0;

/// Number of items of a key, and of slow ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Index into [`Input::keys`](super::Input::keys).
    pub key: u32,
    /// Slow items.
    pub slow: u64,
    /// All items.
    pub items: u64,
}

impl Rate {
    /// Share of slow items, 0–1; 0 without items.
    pub fn share(&self) -> f64 {
        self.slow as f64 / self.items.max(1) as f64
    }
}

/// Counts by key, and the design effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Ascending by key.
    pub rates: Vec<Rate>,
    /// Slow items of all keys.
    pub slow: u64,
    /// Items of all keys.
    pub items: u64,
    /// Number of slow items that count as one, at least 1.
    pub design_effect: f64,
}

/// Whether the rates of keys differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evenness {
    /// Likelihood ratio statistic, divided by the design effect.
    pub g: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// Probability of such a statistic if all keys have the same rate (chi-square).
    pub p: f64,
    /// Number of compared keys or pools of keys, each with at least one expected slow item.
    pub cells: usize,
}

/// One key against all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exposed {
    /// Items of the key.
    pub rate: Rate,
    /// Rate of slow items divided by that of the other keys, with half an item added to both.
    pub relative_risk: f64,
    /// Share of all slow items.
    pub holds: f64,
    /// Fisher's exact test, one-sided.
    pub p: f64,
}

impl Exposed {
    /// Whether relative risk and share are beyond their limits, whatever `p` is.
    pub fn is_much(&self) -> bool {
        self.relative_risk >= RISK_MIN && self.holds >= HOLDS_MIN
    }
}

/// A key that was never slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spared {
    /// Items of the key, none of them slow.
    pub rate: Rate,
    /// Probability of no slow item at the rate of the others.
    pub p: f64,
    /// Number of items that would suffice to call it exempt, at level [`LEVEL`] without adjustment.
    pub enough: u64,
}

impl Rates {
    /// Counts items, each with its key and whether it is slow; the design effect is 1.
    pub fn of(items: impl Iterator<Item = (u32, bool)>) -> Self {
        let mut by_key: BTreeMap<u32, Rate> = BTreeMap::new();
        for (key, slow) in items {
            let rate = by_key.entry(key).or_insert(Rate {
                key,
                slow: 0,
                items: 0,
            });
            rate.items += 1;
            rate.slow += u64::from(slow);
        }
        let rates: Vec<Rate> = by_key.into_values().collect();
        Self {
            slow: rates.iter().map(|rate| rate.slow).sum(),
            items: rates.iter().map(|rate| rate.items).sum(),
            rates,
            design_effect: 1.0,
        }
    }

    /// Number of independent slow items.
    pub fn witnesses(&self) -> f64 {
        self.slow as f64 / self.design_effect
    }

    /// T4: each key against all others.
    pub fn exposed(&self) -> Vec<Exposed> {
        let one = |rate: &Rate| {
            let (rest_slow, rest) = (self.slow - rate.slow, self.items - rate.items);
            let ours = (rate.slow as f64 + 0.5) / (rate.items as f64 + 1.0);
            let theirs = (rest_slow as f64 + 0.5) / (rest as f64 + 1.0);
            Exposed {
                rate: *rate,
                relative_risk: ours / theirs,
                holds: rate.slow as f64 / self.slow.max(1) as f64,
                p: self.chance(rate),
            }
        };
        self.rates.iter().map(one).collect()
    }

    /// Fisher's exact test with counts divided by the design effect, rounded against the key.
    fn chance(&self, rate: &Rate) -> f64 {
        let fewer = |count: u64| (count as f64 / self.design_effect).floor() as u64;
        let slow = fewer(rate.slow);
        let rest_slow = (self.witnesses() - rate.slow as f64 / self.design_effect).ceil() as u64;
        let items = fewer(rate.items).max(slow);
        let rest = fewer(self.items - rate.items).max(rest_slow);
        hypergeometric_tail(slow, items, slow + rest_slow, items + rest)
    }

    /// T5: whether keys have the same rate of slow items: all keys, or those that were ever slow.
    /// `None` with fewer than two keys.
    pub fn evenness(&self, which: Keys) -> Option<Evenness> {
        let rates = self.rates.iter();
        let rates: Vec<&Rate> = rates
            .filter(|rate| which == Keys::All || rate.slow > 0)
            .collect();
        let slow: u64 = rates.iter().map(|rate| rate.slow).sum();
        let items: u64 = rates.iter().map(|rate| rate.items).sum();
        if slow == 0 || slow == items {
            return None;
        }
        let share = slow as f64 / items as f64;
        let cells = cells(&rates, share);
        if cells.len() < 2 {
            return None;
        }
        let term = |found: f64, expected: f64| {
            if found > 0.0 {
                2.0 * found * (found / expected).ln()
            } else {
                0.0
            }
        };
        let g = cells.iter().map(|(slow, items)| {
            term(*slow, items * share) + term(items - slow, items * (1.0 - share))
        });
        let g = g.sum::<f64>() / self.design_effect;
        let degrees = cells.len() - 1;
        Some(Evenness {
            g,
            degrees,
            p: chi_square_tail(g, degrees as f64),
            cells: cells.len(),
        })
    }

    /// T6: keys that are never slow, against the rate of all others.
    pub fn spared(&self) -> Vec<Spared> {
        let never = self.rates.iter().filter(|rate| rate.slow == 0);
        let one = |rate: &Rate| {
            let share = self.slow as f64 / (self.items - rate.items).max(1) as f64;
            let witnesses = rate.items as f64 / self.design_effect;
            Spared {
                rate: *rate,
                p: (witnesses * (-share).ln_1p()).exp(),
                enough: enough(share, self.design_effect, LEVEL),
            }
        };
        never.map(one).collect()
    }
}

/// Which keys are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Every key.
    All,
    /// Those with a slow item.
    EverSlow,
}

/// Number of items of which none is slow with probability `level`, given the share of slow items
/// and the design effect.
pub fn enough(share: f64, design_effect: f64, level: f64) -> u64 {
    if share <= 0.0 {
        return u64::MAX;
    }
    (design_effect * level.ln() / (-share).ln_1p()).ceil() as u64
}

/// Slow items and items by key; keys with a small expected number are pooled.
fn cells(rates: &[&Rate], share: f64) -> Vec<(f64, f64)> {
    let mut cells = Vec::with_capacity(rates.len());
    let mut rest = (0.0, 0.0);
    for rate in rates {
        let cell = (rate.slow as f64, rate.items as f64);
        if cell.1 * share >= EXPECTED_MIN {
            cells.push(cell);
        } else {
            rest = (rest.0 + cell.0, rest.1 + cell.1);
        }
    }
    if rest.1 * share >= EXPECTED_MIN {
        cells.push(rest);
    } else if let Some(last) = cells.last_mut() {
        *last = (last.0 + rest.0, last.1 + rest.1);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(counts: &[(u64, u64)]) -> Rates {
        let one = |(key, (slow, items)): (u32, &(u64, u64))| {
            let (slow, items) = (*slow, *items);
            (0..items).map(move |at| (key, at < slow))
        };
        Rates::of((0..).zip(counts).flat_map(one))
    }

    #[test]
    fn one_in_twenty_slow_takes_ninety_to_call_a_key_exempt() {
        assert_eq!(enough(0.05, 1.0, 0.01), 90);
        assert_eq!(enough(0.05, 2.0, 0.01), 180);
        assert_eq!(enough(0.0, 1.0, 0.01), u64::MAX);
        let of = |items| rates(&[(50, 1000), (0, items)]).spared()[0].p;
        assert!((of(60) - 0.046).abs() < 0.0005 && of(90) < 0.01 && of(89) > 0.01);
    }

    /// 2 Σ O ln(O / E) for 8 and 2 slow of 20 each, at a rate of a quarter.
    #[test]
    fn the_statistic_of_evenness_by_hand() {
        let found = rates(&[(8, 20), (2, 20)]).evenness(Keys::All).unwrap();
        let sum = 8.0 * 1.6f64.ln() + 2.0 * 0.4f64.ln() + 12.0 * 0.8f64.ln() + 18.0 * 1.2f64.ln();
        assert!((found.g - 2.0 * sum).abs() < 1e-12 && found.degrees == 1);
        assert!((found.p - 0.02444).abs() < 0.00001, "{found:?}");
        let mut twice = rates(&[(8, 20), (2, 20)]);
        twice.design_effect = 2.0;
        assert!((twice.evenness(Keys::All).unwrap().g - sum).abs() < 1e-12);
        assert_eq!(rates(&[(8, 20)]).evenness(Keys::All), None);
        assert_eq!(rates(&[(8, 20), (0, 20)]).evenness(Keys::EverSlow), None);
    }

    #[test]
    fn keys_with_next_to_nothing_are_one() {
        let mut counts = vec![(10, 100), (12, 100)];
        counts.extend([(1, 5); 8]);
        let found = rates(&counts).evenness(Keys::All).unwrap();
        assert_eq!((found.cells, found.degrees), (3, 2));
    }

    #[test]
    fn one_key_with_most_of_the_slow_items() {
        let found = rates(&[(1, 100), (40, 100), (0, 100), (2, 100)]).exposed();
        let much: Vec<u32> = found
            .iter()
            .filter(|one| one.is_much())
            .map(|one| one.rate.key)
            .collect();
        assert_eq!(much, [1]);
        assert!(found[1].p < 1e-12 && found[0].p > 0.5);
        assert!((found[1].relative_risk - (40.5 / 101.0) / (3.5 / 301.0)).abs() < 1e-9);
    }
}
