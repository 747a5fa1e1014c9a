//! T3: whether a resource was saturated while items were slow, and not otherwise.
//!
//! Both slowness and saturation come in stretches. So their overlap is compared with that of the
//! same saturated stretches in another order, with the same gaps in another order, from a random
//! start. This preserves their durations and number, and also their clusters, which the few long
//! gaps separate. (Shifting all of them by the same time is not enough: after small shifts they
//! overlap as before, so no probability could be smaller than the share of small shifts.)

use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;

use super::Resource;

const RATIO_MIN: f64 = 3.0;
const SHARE_MIN: f64 = 0.3;
/// Minimum share of time without slow items, to compare with.
const OUTSIDE_MIN: f64 = 0.1;
/// Number of shuffles, first and if the first do not suffice to estimate the probability.
const DEALS: [u32; 2] = [500, 4999];

/// Saturation while items were slow, and otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturated {
    /// Saturated share of the time in which items were slow.
    pub slow: f64,
    /// Saturated share of the other time; of the baseline if there is hardly any.
    pub outside: f64,
    /// Probability of such an overlap if the order of saturated times is random.
    pub p: f64,
    /// `outside` is that of the baseline, and `p` is not meaningful.
    pub is_by_baseline: bool,
}

impl Saturated {
    /// Whether both shares are beyond their limits, whatever `p` is.
    pub fn is_much(&self) -> bool {
        self.slow >= SHARE_MIN && self.slow >= RATIO_MIN * self.outside
    }
}

/// `slow` are start and end of slow items, in any order. `None` if nothing is slow, or if there is
/// no other time and no baseline.
pub fn saturated(
    resource: &Resource,
    slow: impl Iterator<Item = (Ns, Ns)>,
    window: (Ns, Ns),
) -> Option<Saturated> {
    let slow = union(slow, window);
    let (slow_ns, all) = (length(&slow), (window.1 - window.0) as f64);
    let at_limit = union(resource.saturated.iter().copied(), window);
    if slow_ns <= 0.0 || all <= 0.0 {
        return None;
    }
    let both = overlap(&slow, &at_limit);
    if all - slow_ns < OUTSIDE_MIN * all {
        return resource.baseline_share.map(|outside| Saturated {
            slow: both / slow_ns,
            outside,
            p: 0.0,
            is_by_baseline: true,
        });
    }
    Some(Saturated {
        slow: both / slow_ns,
        outside: (length(&at_limit) - both) / (all - slow_ns),
        p: chance(&slow, &at_limit, (window, both)),
        is_by_baseline: false,
    })
}

fn chance(slow: &[(Ns, Ns)], at_limit: &[(Ns, Ns)], (window, both): ((Ns, Ns), f64)) -> f64 {
    let mut dice = Dice::new(3);
    let mut lengths: Vec<Ns> = at_limit.iter().map(|(begin, end)| end - begin).collect();
    let mut gaps = gaps(at_limit, window);
    let (mut deals, mut as_much) = (0, 0);
    for wanted in DEALS {
        while deals < wanted {
            deals += 1;
            dice.shuffle(&mut lengths);
            dice.shuffle(&mut gaps);
            let first = (dice.unit() * (window.1 - window.0) as f64) as Ns;
            let dealt = dealt(&lengths, &gaps, (window, first));
            as_much += u32::from(overlap(slow, &dealt) >= both);
        }
        if as_much > 2 {
            break;
        }
    }
    f64::from(as_much + 1) / f64::from(deals + 1)
}

/// Gaps between stretches, with the one that wraps around from the last to the first at the end.
fn gaps(at_limit: &[(Ns, Ns)], window: (Ns, Ns)) -> Vec<Ns> {
    let between = at_limit.windows(2).map(|pair| pair[1].0 - pair[0].1);
    let (Some(first), Some(last)) = (at_limit.first(), at_limit.last()) else {
        return Vec::new();
    };
    let around = first.0 - window.0 + window.1 - last.1;
    between.chain([around]).collect()
}

/// Alternating stretches and gaps from an offset into the window, wrapping around at its end.
fn dealt(lengths: &[Ns], gaps: &[Ns], (window, first): ((Ns, Ns), Ns)) -> Vec<(Ns, Ns)> {
    let span = window.1 - window.0;
    let mut begin = window.0 + first;
    let both = lengths.iter().zip(gaps).flat_map(|(length, gap)| {
        let stretch = (begin, begin + length);
        begin += length + gap;
        [stretch, (stretch.0 - span, stretch.1 - span)]
    });
    let both: Vec<(Ns, Ns)> = both.collect();
    union(both.into_iter(), window)
}

/// Intervals clipped to the window, merged and in order.
fn union(intervals: impl Iterator<Item = (Ns, Ns)>, window: (Ns, Ns)) -> Vec<(Ns, Ns)> {
    let inside = intervals.map(|(begin, end)| (begin.max(window.0), end.min(window.1)));
    let mut inside: Vec<(Ns, Ns)> = inside.filter(|(begin, end)| begin < end).collect();
    inside.sort_unstable();
    let mut found: Vec<(Ns, Ns)> = Vec::with_capacity(inside.len());
    for (begin, end) in inside {
        match found.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => found.push((begin, end)),
        }
    }
    found
}

fn length(intervals: &[(Ns, Ns)]) -> f64 {
    intervals
        .iter()
        .map(|(begin, end)| (end - begin) as f64)
        .sum()
}

fn overlap(ours: &[(Ns, Ns)], theirs: &[(Ns, Ns)]) -> f64 {
    let (mut sum, mut at) = (0.0, 0);
    for (begin, end) in ours {
        while theirs.get(at).is_some_and(|other| other.1 <= *begin) {
            at += 1;
        }
        for other in theirs[at..].iter().take_while(|other| other.0 < *end) {
            sum += (other.1.min(*end) - other.0.max(*begin)) as f64;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(saturated: Vec<(Ns, Ns)>) -> Resource {
        Resource {
            name: "sda".into(),
            saturated,
            baseline_share: None,
        }
    }

    #[test]
    fn shares_by_hand() {
        let disk = resource(vec![(10, 30), (60, 70)]);
        let slow = [(15, 25), (20, 35), (80, 90)];
        let found = saturated(&disk, slow.into_iter(), (0, 100)).unwrap();
        // Slow for 30, of which 15 are saturated; otherwise 15 of 70.
        assert_eq!((found.slow, found.outside), (0.5, 15.0 / 70.0));
        assert!(!found.is_much() && found.p > 0.05);
    }

    #[test]
    fn what_coincides_again_and_again_is_no_chance() {
        let irregular = [100, 1500, 1900, 4000, 7200, 7700, 9300, 11_100];
        let at = |from: Ns| {
            irregular
                .into_iter()
                .map(move |at| (at + from, at + from + 40))
        };
        let disk = resource(at(0).collect());
        let found = saturated(&disk, at(10), (0, 12_000)).unwrap();
        assert!(found.is_much() && found.p < 0.01, "{found:?}");
    }

    #[test]
    fn stretches_are_dealt_with_their_lengths_and_gaps() {
        let at_limit = [(10, 20), (30, 35), (80, 95)];
        assert_eq!(gaps(&at_limit, (0, 100)), [10, 45, 15]);
        let found = dealt(&[15, 10, 5], &[45, 10, 15], ((0, 100), 70));
        // From 70 to 85, 130 to 140, 150 to 155.
        assert_eq!(found, [(30, 40), (50, 55), (70, 85)]);
        assert!(gaps(&[], (0, 100)).is_empty());
    }

    #[test]
    fn without_time_outside_only_a_baseline_tells() {
        let mut disk = resource(vec![(0, 98)]);
        let all = || [(0, 95)].into_iter();
        assert_eq!(saturated(&disk, all(), (0, 100)), None);
        disk.baseline_share = Some(0.02);
        let found = saturated(&disk, all(), (0, 100)).unwrap();
        assert!(found.is_by_baseline && found.is_much());
        assert_eq!(saturated(&disk, [].into_iter(), (0, 100)), None);
    }
}
