//! Bounds on the clock offset between two hosts, from requests seen on both.
//!
//! A request cannot arrive before it is sent, nor can its reply. So each request seen on both sides
//! gives an upper and a lower bound, and together they are as tight as the fastest transfers in
//! each direction. Nothing is guessed: the result is an interval that contains the offset, or none.
//!
//! Clocks drift. The kernel corrects a clock by up to 500 ppm, so two clocks may diverge by a
//! thousandth of the elapsed time; bounds from another time are widened by that. A clock that was
//! set, or slewed faster, leads to contradicting bounds, and then nothing is claimed.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

/// Two clocks diverge by at most one part in this many.
const DRIFT_PARTS: Ns = 1000;

/// Bounds on the other clock minus this one, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) low_ns: Ns,
    pub(super) high_ns: Ns,
}

impl Bounds {
    pub(super) const ANY: Self = Self {
        low_ns: Ns::MIN,
        high_ns: Ns::MAX,
    };

    /// The bounds from one pair, at a time. `had` is the offset if the request had arrived without
    /// delay, and the time it was sent; `gave` the offset if the reply had, and the time it
    /// arrived. Each is exact at that time and widens with the distance from it.
    pub(super) fn of_pair(had: (Ns, Ns), gave: (Ns, Ns), at: Ns) -> Self {
        let high = Self {
            high_ns: had.0,
            ..Self::ANY
        };
        let low = Self {
            low_ns: gave.0,
            ..Self::ANY
        };
        Self {
            low_ns: low.after(at.saturating_sub(gave.1)).low_ns,
            high_ns: high.after(at.saturating_sub(had.1)).high_ns,
        }
    }

    /// Widened for a distance in time, before or after.
    pub(super) fn after(self, distance: Ns) -> Self {
        let drift = distance.saturating_abs() / DRIFT_PARTS + 1;
        let drift = if distance == 0 { 0 } else { drift };
        Self {
            low_ns: self.low_ns.saturating_sub(drift),
            high_ns: self.high_ns.saturating_add(drift),
        }
    }

    /// The intersection, if it is not empty.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let both = Self {
            low_ns: self.low_ns.max(other.low_ns),
            high_ns: self.high_ns.min(other.high_ns),
        };
        (both.low_ns <= both.high_ns).then_some(both)
    }

    pub(super) fn width_ns(self) -> Ns {
        self.high_ns.saturating_sub(self.low_ns)
    }

    /// The middle of the bounds, as an estimate.
    pub(super) fn middle_ns(self) -> Ns {
        self.low_ns.saturating_add(self.width_ns() / 2)
    }
}

/// The bounds from one pair of views that may be the same request, at the time in query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Id of the client's request; several candidates of it exclude each other.
    pub(super) issued: u64,
    pub(super) bounds: Bounds,
    /// Both views are the same request, independent of the clocks. Others are only possible.
    pub(super) is_sure: bool,
}

/// The clock offset according to all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    Within {
        bounds: Bounds,
        pairs: u64,
        /// The pairs were known independent of the clocks.
        is_sure: bool,
    },
    /// No offset fits all sure pairs; `contradicting` of them do not fit the best one.
    Contradicting { pairs: u64, contradicting: u64 },
    /// Several offsets fit a similar number of possible pairs.
    Ambiguous { pairs: u64 },
    /// There is no pair.
    Unknown,
}

impl Clock {
    pub(super) fn of(candidates: &[Candidate]) -> Self {
        let sure: Vec<Candidate> = candidates.iter().copied().filter(|it| it.is_sure).collect();
        if !sure.is_empty() {
            let pairs = count(&sure);
            let (best, _) = fits(&sure);
            return match best {
                Fit { bounds, count } if count == pairs => Self::Within {
                    bounds,
                    pairs,
                    is_sure: true,
                },
                Fit { count, .. } => Self::Contradicting {
                    pairs,
                    contradicting: pairs - count,
                },
            };
        }
        if candidates.is_empty() {
            return Self::Unknown;
        }
        let (best, second) = fits(candidates);
        // Requests at equal intervals fit nearly as well if each is matched with the next one.
        if 5 * second >= 4 * best.count {
            let pairs = count(candidates);
            return Self::Ambiguous { pairs };
        }
        Self::Within {
            bounds: best.bounds,
            pairs: best.count,
            is_sure: false,
        }
    }
}

/// The number of pairs that fit all offsets in these bounds.
struct Fit {
    bounds: Bounds,
    count: u64,
}

fn count(candidates: &[Candidate]) -> u64 {
    let mut issued: Vec<u64> = candidates.iter().map(|it| it.issued).collect();
    issued.sort_unstable();
    issued.dedup();
    issued.len() as u64
}

/// The range of offsets that fits most pairs, and the number that the second best range fits.
fn fits(candidates: &[Candidate]) -> (Fit, u64) {
    let mut edges: Vec<(Ns, bool)> = Vec::with_capacity(2 * candidates.len());
    for one in merged(candidates) {
        edges.push((one.low_ns, false));
        edges.push((one.high_ns, true));
    }
    // At the same value, starts come before ends, because both bounds are inclusive.
    edges.sort_unstable();
    let (mut now, mut is_rising) = (0_u64, true);
    let (mut best, mut second) = (
        Fit {
            bounds: Bounds::ANY,
            count: 0,
        },
        0,
    );
    let mut since = Ns::MIN;
    for (at, is_end) in edges {
        if !is_end {
            now += 1;
            (since, is_rising) = (at, true);
            continue;
        }
        if is_rising {
            let bounds = Bounds {
                low_ns: since,
                high_ns: at,
            };
            if now > best.count {
                second = best.count;
                best = Fit { bounds, count: now };
            } else {
                second = second.max(now);
            }
        }
        (now, is_rising) = (now - 1, false);
    }
    (best, second)
}

/// Merges overlapping bounds of the candidates of one request, so that they count once.
fn merged(candidates: &[Candidate]) -> Vec<Bounds> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.index_sort_by_key(|it| (it.issued, it.bounds.low_ns, it.bounds.high_ns));
    let mut found: Vec<(u64, Bounds)> = Vec::with_capacity(sorted.len());
    for one in sorted
        .into_iter()
        .filter(|it| it.bounds.low_ns <= it.bounds.high_ns)
    {
        match found.last_mut() {
            Some((issued, last)) if *issued == one.issued && one.bounds.low_ns <= last.high_ns => {
                last.high_ns = last.high_ns.max(one.bounds.high_ns);
            }
            _ => found.push((one.issued, one.bounds)),
        }
    }
    found.into_iter().map(|(_, bounds)| bounds).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sure(issued: u64, low_ns: Ns, high_ns: Ns) -> Candidate {
        Candidate {
            issued,
            bounds: Bounds { low_ns, high_ns },
            is_sure: true,
        }
    }

    fn possible(issued: u64, low_ns: Ns, high_ns: Ns) -> Candidate {
        Candidate {
            is_sure: false,
            ..sure(issued, low_ns, high_ns)
        }
    }

    #[test]
    fn what_all_pairs_allow_is_left() {
        let check = |pairs: &[Candidate], want: Clock| assert_eq!(Clock::of(pairs), want);
        let within = |low_ns, high_ns, pairs, is_sure| Clock::Within {
            bounds: Bounds { low_ns, high_ns },
            pairs,
            is_sure,
        };
        check(&[], Clock::Unknown);
        check(&[sure(1, -5, 9)], within(-5, 9, 1, true));
        check(&[sure(1, -5, 9), sure(2, 3, 20)], within(3, 9, 2, true));
        // Bounds that only touch leave one difference.
        check(&[sure(1, -5, 9), sure(2, 9, 20)], within(9, 9, 2, true));
        // One-sided ones, as of packets.
        let packets = [sure(1, Ns::MIN, 7), sure(2, 4, Ns::MAX)];
        check(&packets, within(4, 7, 2, true));
        // Possible pairs are ignored if there are sure ones.
        check(&[sure(1, 0, 9), possible(2, 50, 60)], within(0, 9, 1, true));
    }

    #[test]
    fn pairs_that_contradict_are_counted() {
        let found = Clock::of(&[
            sure(1, 0, 9),
            sure(2, 5, 12),
            sure(3, 20, 30),
            sure(4, 8, 9),
        ]);
        let want = Clock::Contradicting {
            pairs: 4,
            contradicting: 1,
        };
        assert_eq!(found, want);
    }

    #[test]
    fn equal_distances_do_not_tell_which_is_which() {
        // Each of ten requests, a second apart, may be any of ten.
        let all = |drop: i64| -> Vec<Candidate> {
            (0..10_i64)
                .flat_map(|issued| {
                    (drop..10).map(move |served| {
                        let apart = 1000 * (served - issued);
                        possible(issued as u64, apart - 5, apart + 5)
                    })
                })
                .collect()
        };
        assert_eq!(Clock::of(&all(0)), Clock::Ambiguous { pairs: 10 });
        assert_eq!(Clock::of(&all(3)), Clock::Ambiguous { pairs: 10 });
        // Different intervals do.
        let times = [0_i64, 100, 170, 450, 900];
        let candidates: Vec<Candidate> = (0..5_usize)
            .flat_map(|issued| {
                (0..5_usize).map(move |served| {
                    let apart = times[served] - times[issued];
                    possible(issued as u64, apart - 5, apart + 5)
                })
            })
            .collect();
        let want = Clock::Within {
            bounds: Bounds {
                low_ns: -5,
                high_ns: 5,
            },
            pairs: 5,
            is_sure: false,
        };
        assert_eq!(Clock::of(&candidates), want);
    }

    /// A request: start, transfer to the server, work, transfer back.
    fn trips() -> impl Strategy<Value = Vec<(Ns, Ns, Ns, Ns)>> {
        let trip = (
            0_i64..60_000_000_000,
            0_i64..10_000_000,
            0_i64..1_000_000_000,
            0_i64..10_000_000,
        );
        prop::collection::vec(trip, 1..40)
    }

    proptest! {
        /// Whatever the transfer times, the work and the drift are, the bounds contain the true
        /// offset.
        #[test]
        fn the_true_difference_lies_within_the_bounds(
            apart in -1_000_000_000_000_i64..1_000_000_000_000,
            drift_ppm in -1000_i64..=1000,
            at in 0_i64..60_000_000_000,
            trips in trips(),
        ) {
            let other = |here: Ns| here + apart + here / 1_000_000 * drift_ppm;
            let pairs: Vec<Candidate> = trips
                .iter()
                .enumerate()
                .map(|(number, &(ts, there, work, back))| {
                    let (had, gave) = (ts + there, ts + there + work);
                    let end = gave + back;
                    let bounds =
                        Bounds::of_pair((other(had) - ts, ts), (other(gave) - end, end), at);
                    Candidate { bounds, ..sure(number as u64, 0, 0) }
                })
                .collect();
            let Clock::Within { bounds, pairs: count, .. } = Clock::of(&pairs) else {
                panic!("they fit: {pairs:?}");
            };
            prop_assert_eq!(count as usize, trips.len());
            let truth = other(at) - at;
            prop_assert!(bounds.low_ns <= truth && truth <= bounds.high_ns, "{bounds:?} {truth}");
        }

        /// A clock that was set between two requests, by more than transfer times and drift could
        /// hide.
        #[test]
        fn a_clock_that_was_set_contradicts(jump in 2_000_001_i64..1 << 40) {
            let pair = |issued, set: Ns| sure(issued, set - 1_000_000, set + 1_000_000);
            let found = Clock::of(&[pair(1, 0), pair(2, 0), pair(3, jump)]);
            prop_assert_eq!(found, Clock::Contradicting { pairs: 3, contradicting: 1 });
        }
    }
}
