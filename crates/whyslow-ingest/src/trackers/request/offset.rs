//! Clock offset between two hosts, bounded by the messages between them.
//!
//! No request is read before it is sent, and no reply before it is written. Each exchange known to
//! both sides bounds the offset on both sides, and all of them together bound it as tightly as the
//! fastest message in each direction.

use whyslow_model::Ns;

/// Offset to add to times of the server to convert them to the client's clock: between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) struct Offset {
    pub(in crate::trackers) low_ns: Ns,
    pub(in crate::trackers) high_ns: Ns,
}

/// An exchange as reported by both sides.
#[derive(Debug, Clone, Copy)]
pub(in crate::trackers) struct BothSides {
    /// Start and end at the client.
    pub(in crate::trackers) client: (Ns, Ns),
    /// At the server, the arrival of the request and the start of the reply.
    pub(in crate::trackers) served: (Ns, Ns),
}

impl Offset {
    /// `None` without exchanges, or if no offset fits all of them: they are not the same exchanges,
    /// or a clock was set in the meantime.
    pub(in crate::trackers) fn of(exchanges: impl IntoIterator<Item = BothSides>) -> Option<Self> {
        let mut exchanges = exchanges.into_iter();
        let first = Self::one(exchanges.next()?);
        let all = exchanges.fold(first, |all, exchange| {
            let one = Self::one(exchange);
            Self {
                low_ns: all.low_ns.max(one.low_ns),
                high_ns: all.high_ns.min(one.high_ns),
            }
        });
        (all.low_ns <= all.high_ns).then_some(all)
    }

    /// Best estimate, and its maximum error.
    pub(in crate::trackers) fn middle_ns(self) -> (Ns, Ns) {
        let width = self.high_ns.saturating_sub(self.low_ns);
        (self.low_ns.saturating_add(width / 2), width - width / 2)
    }

    /// Both may use the same clock.
    pub(in crate::trackers) fn is_none(self) -> bool {
        (self.low_ns..=self.high_ns).contains(&0)
    }

    fn one(exchange: BothSides) -> Self {
        Self {
            low_ns: exchange.client.0.saturating_sub(exchange.served.0),
            high_ns: exchange.client.1.saturating_sub(exchange.served.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BothSides, Offset};

    proptest! {
        /// Whatever the latencies and the service time, the true offset is within the bounds, and
        /// the bounds are no wider than the fastest messages together.
        #[test]
        fn the_true_difference_lies_within_the_bounds(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            trips in prop::collection::vec(
                (0i64..1 << 50, 0i64..10_000_000, 0i64..1_000_000_000, 0i64..10_000_000),
                1..50,
            ),
        ) {
            let exchanges = trips.iter().map(|&(ts, there, work, back)| BothSides {
                client: (ts, ts + there + work + back),
                served: (ts + there - offset, ts + there + work - offset),
            });
            let found = Offset::of(exchanges).expect("they fit");
            prop_assert!((found.low_ns..=found.high_ns).contains(&offset));
            let there = trips.iter().map(|trip| trip.1).min();
            let back = trips.iter().map(|trip| trip.3).min();
            prop_assert_eq!(Some(found.high_ns - found.low_ns), there.zip(back).map(|(a, b)| a + b));
            let (middle, error) = found.middle_ns();
            prop_assert!((middle - offset).abs() <= error);
        }

        #[test]
        fn a_clock_that_was_set_fits_nothing(jump in 20_000_001i64..1 << 40) {
            let exchange = |offset| BothSides {
                client: (0, 20_000_000),
                served: (10_000_000 - offset, 10_000_000 - offset),
            };
            prop_assert_eq!(Offset::of([exchange(0), exchange(jump)]), None);
        }
    }

    #[test]
    fn without_exchanges_nothing_is_known() {
        assert_eq!(Offset::of([]), None);
    }
}
