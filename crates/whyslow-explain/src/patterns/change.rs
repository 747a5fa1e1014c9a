//! T12: changes at a point in time.
//!
//! The window is divided into bins, which are split recursively where the rates of slow items
//! before and after differ most (binary segmentation by the likelihood ratio of two binomial
//! rates), or where the ranks of the bins' median durations do (Pettitt 1979). Bursts of slow items
//! make the rates of bins vary by themselves, so the ratio is divided by the excess of their
//! variance on both sides over chance.

use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

use super::Mark;
use super::ranks::median;

const BINS_MIN: usize = 40;
const BINS_MAX: usize = 400;
/// Average number of items in a bin.
const ITEMS_IN_BIN: usize = 10;
const SEGMENT_BINS_MIN: usize = 20;
const SEGMENT_ITEMS_MIN: f64 = 30.0;
/// Minimum gain of a cut, in multiples of the logarithm of the number of bins.
const PENALTY: f64 = 3.0;
const PETTITT_LEVEL: f64 = 1e-3;
/// Maximum distance of a mark that is reported with a change, in bins.
const MARK_WITHIN: Ns = 2;

/// One item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Start of the item.
    pub ts: Ns,
    /// Logarithm of its duration divided by the usual one of its key.
    pub log_ratio: f64,
    /// Whether it is slow compared with the usual duration of its key.
    pub slow: bool,
}

/// A time before and after which items differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Start of the first bin after it; exact to a bin.
    pub ts: Ns,
    /// Length of a bin, ns.
    pub within: Ns,
    /// Share of slow items before and after, up to the next changes.
    pub rates: [f64; 2],
    /// Median duration before and after, in multiples of the usual one.
    pub ratios: [f64; 2],
    /// Twice the logarithm of the likelihood ratio, divided by its dispersion.
    pub gain: f64,
    /// Significance of Pettitt's test on medians.
    pub p: f64,
    /// Indexes of the marks near the change.
    pub marks: Vec<usize>,
}

#[derive(Debug, Clone, Default)]
struct Bin {
    items: f64,
    slow: f64,
    /// Median of the logarithms; none without items.
    middle: Option<f64>,
}

/// Changes by time. Empty with fewer items than two segments need.
pub fn changes(points: &[Point], window: (Ns, Ns), marks: &[Mark]) -> Vec<Change> {
    let count = (points.len() / ITEMS_IN_BIN).clamp(BINS_MIN, BINS_MAX);
    let width = (window.1 - window.0) / count as Ns + 1;
    if width <= 1 || (points.len() as f64) < 2.0 * SEGMENT_ITEMS_MIN {
        return Vec::new();
    }
    let mut bins = vec![Bin::default(); count];
    let mut logs = vec![Vec::new(); count];
    for point in points {
        let place = (point.ts - window.0).div_euclid(width);
        if let Ok(place) = usize::try_from(place)
            && place < count
        {
            bins[place].items += 1.0;
            bins[place].slow += f64::from(u8::from(point.slow));
            logs[place].push(point.log_ratio);
        }
    }
    for (bin, logs) in bins.iter_mut().zip(logs) {
        bin.middle = median(logs);
    }
    let mut cuts = Vec::new();
    segment(&bins, 0, &mut cuts);
    cuts.index_sort_by_key(|(place, ..)| *place);
    let bounds: Vec<usize> = std::iter::once(0)
        .chain(cuts.iter().map(|(place, ..)| *place))
        .chain([count])
        .collect();
    let change = |(number, (place, gain, p)): (usize, &(usize, f64, f64))| {
        let sides = [
            &bins[bounds[number]..*place],
            &bins[*place..bounds[number + 2]],
        ];
        let ts = window.0 + *place as Ns * width;
        let near = |mark: &Mark| (mark.ts - ts).abs() <= MARK_WITHIN * width;
        let marks = marks.iter().enumerate().filter(|(_, mark)| near(mark));
        Change {
            ts,
            within: width,
            rates: sides.map(rate),
            ratios: sides.map(|side| middle(side).exp()),
            gain: *gain,
            p: *p,
            marks: marks.map(|(place, _)| place).collect(),
        }
    };
    cuts.iter().enumerate().map(change).collect()
}

/// Cuts where the gain suffices, and then both sides recursively.
fn segment(bins: &[Bin], first: usize, cuts: &mut Vec<(usize, f64, f64)>) {
    let (by_rate, by_middle) = (best_rate(bins), best_middle(bins));
    let enough = PENALTY * (bins.len() as f64).ln();
    let rate = by_rate.filter(|(_, gain)| *gain > enough);
    let ranks = by_middle.filter(|(_, p)| *p < PETTITT_LEVEL);
    let Some(place) = rate
        .map(|(place, _)| place)
        .or(ranks.map(|(place, _)| place))
    else {
        return;
    };
    let gain = by_rate.map_or(0.0, |(_, gain)| gain);
    let p = by_middle.map_or(1.0, |(_, p)| p);
    cuts.push((first + place, gain, p));
    segment(&bins[..place], first, cuts);
    segment(&bins[place..], first + place, cuts);
}

/// Possible cuts at which both sides are long enough.
fn places(bins: &[Bin]) -> impl Iterator<Item = usize> {
    let all: f64 = bins.iter().map(|bin| bin.items).sum();
    let mut before = 0.0;
    let so_far: Vec<f64> = bins
        .iter()
        .map(|bin| {
            before += bin.items;
            before
        })
        .collect();
    let last = bins.len().saturating_sub(SEGMENT_BINS_MIN);
    (SEGMENT_BINS_MIN..=last).filter(move |place| {
        let before = so_far[place - 1];
        before >= SEGMENT_ITEMS_MIN && all - before >= SEGMENT_ITEMS_MIN
    })
}

/// The cut with the greatest gain in likelihood, divided by the remaining dispersion.
fn best_rate(bins: &[Bin]) -> Option<(usize, f64)> {
    let sum = |bins: &[Bin]| {
        let add = |sum: (f64, f64), bin: &Bin| (sum.0 + bin.slow, sum.1 + bin.items);
        bins.iter().fold((0.0, 0.0), add)
    };
    let all = sum(bins);
    let (mut before, mut done) = ((0.0, 0.0), 0);
    let mut best: Option<(usize, f64)> = None;
    for place in places(bins) {
        let more = sum(&bins[done..place]);
        before = (before.0 + more.0, before.1 + more.1);
        done = place;
        let after = (all.0 - before.0, all.1 - before.1);
        let gain = 2.0 * (likelihood(before) + likelihood(after) - likelihood(all));
        if best.is_none_or(|(_, most)| gain > most) {
            best = Some((place, gain));
        }
    }
    let (place, gain) = best?;
    Some((place, gain / dispersion(&bins[..place], &bins[place..])))
}

/// Log-likelihood of the slow items at their own rate.
fn likelihood((slow, items): (f64, f64)) -> f64 {
    let term = |count: f64| {
        if count > 0.0 {
            count * (count / items).ln()
        } else {
            0.0
        }
    };
    term(slow) + term(items - slow)
}

/// Variance of the bins' counts around the rates of both sides, in multiples of the variance by
/// chance.
fn dispersion(before: &[Bin], after: &[Bin]) -> f64 {
    let (mut found, mut expected, mut bins) = (0.0, 0.0, 0.0);
    for side in [before, after] {
        let rate = rate(side);
        for bin in side.iter().filter(|bin| bin.items > 0.0) {
            found += (bin.slow - bin.items * rate).powi(2);
            expected += bin.items * rate * (1.0 - rate);
            bins += 1.0;
        }
    }
    if expected <= 0.0 || bins <= 2.0 {
        return 1.0;
    }
    (found / expected * bins / (bins - 2.0)).max(1.0)
}

/// Pettitt's statistic on the bins' medians, and its approximate significance.
fn best_middle(bins: &[Bin]) -> Option<(usize, f64)> {
    let known: Vec<(usize, f64)> = bins
        .iter()
        .enumerate()
        .filter_map(|(place, bin)| Some((place, bin.middle?)))
        .collect();
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.index_sort_by_ints(|at| [float_key(known[*at].1), 0, 0]);
    let mut ranks = vec![0.0; known.len()];
    let mut below = 0.0;
    for equal in order.chunk_by(|a, b| known[*a].1 == known[*b].1) {
        let count = equal.len() as f64;
        for place in equal {
            ranks[*place] = below + f64::midpoint(count, 1.0);
        }
        below += count;
    }
    let count = known.len() as f64;
    let allowed: Vec<usize> = places(bins).collect();
    let (mut sum, mut best) = (0.0, None);
    for (number, rank) in ranks.iter().enumerate() {
        sum += rank;
        let before = number as f64 + 1.0;
        let far = (2.0 * sum - before * (count + 1.0)).abs();
        let place = known[number].0 + 1;
        let is_better = best.is_none_or(|(_, most)| far > most);
        if is_better && allowed.binary_search(&place).is_ok() {
            best = Some((place, far));
        }
    }
    let (place, far) = best?;
    let p = 2.0 * (-6.0 * far * far / (count.powi(3) + count.powi(2))).exp();
    Some((place, p.min(1.0)))
}

fn rate(bins: &[Bin]) -> f64 {
    let items: f64 = bins.iter().map(|bin| bin.items).sum();
    bins.iter().map(|bin| bin.slow).sum::<f64>() / items.max(1.0)
}

fn middle(bins: &[Bin]) -> f64 {
    median(bins.iter().filter_map(|bin| bin.middle).collect()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_analysis::statistics::Dice;

    const MS: Ns = 1_000_000;

    fn points(count: i64, one: impl Fn(i64, &mut Dice) -> (f64, bool)) -> Vec<Point> {
        let mut dice = Dice::new(9);
        let mut point = |at: i64| {
            let (log_ratio, slow) = one(at, &mut dice);
            Point {
                ts: at * 10 * MS,
                log_ratio,
                slow,
            }
        };
        (0..count).map(&mut point).collect()
    }

    #[test]
    fn the_moment_of_a_change_is_found_with_what_happened_then() {
        let all = points(2000, |at, dice| {
            (
                0.3 * dice.normal(),
                dice.happens(if at < 1200 { 0.01 } else { 0.12 }),
            )
        });
        let mark = |ts: Ns, name: &str| Mark {
            ts,
            name: name.into(),
        };
        let marks = [mark(3000 * MS, "cron"), mark(11_900 * MS, "deploy")];
        let found = changes(&all, (0, 20_000 * MS), &marks);
        assert_eq!(found.len(), 1, "{found:?}");
        let change = &found[0];
        assert!(
            (change.ts - 12_000 * MS).abs() <= 4 * change.within,
            "{change:?}"
        );
        assert!(change.rates[0] < 0.03 && change.rates[1] > 0.08);
    }

    #[test]
    fn a_shift_of_all_times_is_found_without_slow_ones() {
        let all = points(2000, |at, dice| {
            (
                0.5 * dice.normal() + if at < 800 { 0.0 } else { 0.4 },
                false,
            )
        });
        let found = changes(&all, (0, 20_000 * MS), &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].ts - 8000 * MS).abs() <= 4 * found[0].within);
        assert!(found[0].ratios[1] / found[0].ratios[0] > 1.3);
    }

    #[test]
    fn a_burst_or_few_items_are_no_change() {
        let burst = points(2000, |at, dice| {
            (
                0.3 * dice.normal(),
                (700..730).contains(&at) || dice.happens(0.01),
            )
        });
        assert_eq!(changes(&burst, (0, 20_000 * MS), &[]), []);
        assert_eq!(changes(&burst[..50], (0, 500 * MS), &[]), []);
        assert_eq!(changes(&[], (0, 0), &[]), []);
    }

    /// Ranks 1, 2, 3, 4 of four bins: |2 × 3 − 2 × 5| at the middle.
    #[test]
    fn the_statistic_of_pettitt_by_hand() {
        let bins: Vec<Bin> = (0..40)
            .map(|at| Bin {
                items: 5.0,
                slow: 0.0,
                middle: Some(f64::from(at)),
            })
            .collect();
        let (place, p) = best_middle(&bins).unwrap();
        let far: f64 = 20.0 * 20.0;
        assert_eq!(place, 20);
        assert!((p - 2.0 * (-6.0 * far * far / 65_600.0).exp()).abs() < 1e-12);
    }
}
