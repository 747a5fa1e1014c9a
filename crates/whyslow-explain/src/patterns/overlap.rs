//! T13: whether slow items of one worker, connection or lock wait behind each other.
//!
//! Many slow items overlap by chance. So the time for which those of one group overlap is compared
//! with that after shuffling their starts among all of them: the slow times stay, but the groups
//! change.

use std::collections::BTreeMap;

use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;

use super::UNIDENTIFIED;

/// Number of shuffles, first and if the first do not suffice to estimate the probability.
const DEALS: [u32; 2] = [500, 4999];
const LEVEL: f64 = 0.01;
/// Minimum number of slow items: fewer have too few permutations.
const SLOW_MIN: usize = 5;
/// Maximum number of slow items: more add nothing, and each shuffle sorts them.
const SLOW_MAX: usize = 1000;

/// Overlap of slow items within their groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    /// Sum of the time with a second, third … slow item of the same group, ns.
    pub together: f64,
    /// Mean over the shuffles.
    pub expected: f64,
    /// Share of the shuffles with at least as much overlap.
    pub p: f64,
    /// Group with the most overlap.
    pub group: u32,
}

impl Overlap {
    /// Whether `p` is below the level.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL
    }
}

/// `slow` are start, duration and group of slow items. `None` if too few have a group, there is
/// only one group, or no two of a group overlap.
pub fn overlap(slow: impl Iterator<Item = (Ns, Ns, u32)>) -> Option<Overlap> {
    let known = slow.filter(|(.., group)| *group != UNIDENTIFIED);
    let mut slow: Vec<(Ns, Ns, u32)> = known.take(SLOW_MAX).collect();
    slow.sort_unstable_by_key(|(ts, dur, group)| (*group, *ts, *dur));
    if slow.len() < SLOW_MIN || slow[0].2 == slow[slow.len() - 1].2 {
        return None;
    }
    let by_group = together(&slow);
    let sum: f64 = by_group.values().sum();
    if sum <= 0.0 {
        return None;
    }
    let (group, _) = by_group.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let mut dice = Dice::new(13);
    let mut starts: Vec<Ns> = slow.iter().map(|(ts, ..)| *ts).collect();
    let (mut deals, mut as_much, mut expected) = (0, 0, 0.0);
    for wanted in DEALS {
        while deals < wanted {
            deals += 1;
            dice.shuffle(&mut starts);
            let dealt = slow.iter().zip(&starts);
            let mut dealt: Vec<_> = dealt
                .map(|((_, dur, group), ts)| (*ts, *dur, *group))
                .collect();
            dealt.sort_unstable_by_key(|(ts, dur, group)| (*group, *ts, *dur));
            let found: f64 = together(&dealt).values().sum();
            expected += found;
            as_much += u32::from(found >= sum);
        }
        if as_much > 2 {
            break;
        }
    }
    Some(Overlap {
        together: sum,
        expected: expected / f64::from(deals),
        p: f64::from(as_much + 1) / f64::from(deals + 1),
        group: *group,
    })
}

/// Sum of durations minus covered time, by group. `slow` by group and start.
fn together(slow: &[(Ns, Ns, u32)]) -> BTreeMap<u32, f64> {
    let mut found = BTreeMap::new();
    for group in slow.chunk_by(|a, b| a.2 == b.2) {
        let (mut sum, mut end) = (0.0, Ns::MIN);
        for (ts, dur, _) in group {
            let own = ts.saturating_add(*dur);
            sum += (end.min(own) - (*ts).min(end)) as f64;
            end = end.max(own);
        }
        found.insert(group[0].2, sum);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_by_hand() {
        let slow = [
            (0, 10, 1),
            (5, 10, 1),
            (6, 2, 1),
            (100, 5, 1),
            (0, 50, 2),
            (50, 1, 2),
        ];
        let found = together(&slow);
        assert_eq!((found[&1], found[&2]), (7.0, 0.0));
    }

    #[test]
    fn slow_ones_of_one_connection_behind_each_other() {
        // Ten connections, each slow at its own time.
        let own = (0..40).map(|at| (Ns::from(at / 4) * 1000 + Ns::from(at % 4) * 10, 200, at / 4));
        let found = overlap(own).unwrap();
        assert!(
            found.is_much() && found.together > 5.0 * found.expected,
            "{found:?}"
        );
        // All connections slow at the same times.
        let all = (0..40).map(|at| (Ns::from(at / 4) * 1000 + Ns::from(at % 4) * 10, 200, at % 4));
        assert!(overlap(all).is_none_or(|found| !found.is_much()));
        assert_eq!(overlap((0..40).map(|at| (at, 100, 7))), None);
        assert_eq!(overlap((0..40).map(|at| (at, 100, UNIDENTIFIED))), None);
    }
}
