//! Slow and failed requests during a burst, and the probability that they are chance.

use whyslow_analysis::bursts::Series;
use whyslow_analysis::statistics::binomial_tail;
use whyslow_model::Ns;

use crate::sentence;

/// Minimum ratio of the share of slow or failed requests to that at other times.
const TIMES_MIN: f64 = 2.0;
/// Minimum number of slow or failed requests.
const BAD_MIN: u64 = 5;
/// Maximum probability of chance for an overlap to be reported, over all bursts.
const CHANCE_MAX: f64 = 0.02;
/// Maximum probability of that many slow or failed requests at the rate of other times.
const SCATTER_MAX: f64 = 0.001;
/// Minimum number of requests of other clients to report that they were not slower.
pub(super) const OTHERS_MIN: u64 = 10;

/// Requests of one kind, and how many of them were slow or failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bad: u64,
    pub(super) all: u64,
}

impl Share {
    pub(super) fn add(&mut self, is_bad: bool) {
        self.all += 1;
        self.bad += u64::from(is_bad);
    }

    fn value(self) -> f64 {
        self.bad as f64 / self.all.max(1) as f64
    }

    /// Whether it is several times the other share, and beyond random scatter. The other share may
    /// be known only from few requests.
    pub(super) fn is_much_more(self, than: Self) -> bool {
        let other = (than.bad + 1) as f64 / (than.all + 2) as f64;
        self.bad >= BAD_MIN
            && self.value() >= TIMES_MIN * other.min(0.5)
            && binomial_tail(self.bad, self.all, other) <= SCATTER_MAX
    }

    fn summary(self) -> String {
        format!(
            "{} of {} ({})",
            self.bad,
            self.all,
            sentence::percent(self.value())
        )
    }
}

/// Requests during a burst, and at other times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meanwhile {
    pub(super) own: Share,
    pub(super) own_else: Share,
    pub(super) others: Share,
    pub(super) others_else: Share,
    /// Probability that the other clients' slow requests overlap with it by chance.
    pub(super) chance: f64,
    /// Duration and id of the other clients' longest request in that time.
    pub(super) longest: Option<(Ns, i64)>,
}

impl Meanwhile {
    pub(super) fn overlaps(&self, bursts: usize) -> bool {
        self.others.is_much_more(self.others_else) && self.chance * bursts as f64 <= CHANCE_MAX
    }
}

/// The requests of other clients and its own, as sentences.
pub(super) fn describe(meanwhile: &Meanwhile, bursts: usize) -> String {
    let (others, elsewhere) = (meanwhile.others, meanwhile.others_else);
    let shares = format!(
        "{} were slow or failed during the burst, {} at other times",
        others.summary(),
        elsewhere.summary()
    );
    let chance = (meanwhile.chance * bursts as f64).min(1.0);
    let of_others = if meanwhile.overlaps(bursts) {
        format!(
            "The burst overlapped with slow requests of other clients: {shares} (p = {chance:.3}); causality not established"
        )
    } else if others.all < OTHERS_MIN {
        format!(
            "Other clients started only {} requests during the burst, too few to show whether they were slower",
            others.all
        )
    } else if others.is_much_more(elsewhere) {
        format!("Of other clients' requests {shares}, which may be coincidence (p = {chance:.2})")
    } else {
        format!("Requests of other clients were not slower: {shares}")
    };
    if meanwhile.own.is_much_more(meanwhile.own_else) {
        format!(
            "{of_others}. Of this client's own requests {} were slow or failed",
            meanwhile.own.summary()
        )
    } else {
        of_others
    }
}

/// Share of all positions of an interval of this length at which requests degrade as much compared
/// with the interval before it. Time is treated as circular.
pub(super) fn chance(of_others: &Series, (first, last): (usize, usize)) -> f64 {
    let (parts, length) = (of_others.requests.len(), last - first + 1);
    if 2 * length > parts {
        return 1.0;
    }
    let sum = |series: &[u64]| series.iter().sum::<u64>() as f64;
    let rate = sum(&of_others.errors) / sum(&of_others.requests).max(1.0);
    let excess = |part: usize| {
        let part = part % parts;
        of_others.errors[part] as f64 - rate * of_others.requests[part] as f64
    };
    let step = |begin: usize| -> f64 {
        let inside: f64 = (begin..begin + length).map(excess).sum();
        let before: f64 = (begin + parts - length..begin + parts).map(excess).sum();
        inside - before
    };
    let here = step(first);
    let as_much = (0..parts).filter(|begin| step(*begin) >= here - 1e-9);
    as_much.count() as f64 / parts as f64
}

#[cfg(test)]
mod tests {
    use whyslow_analysis::bursts::Series;
    use whyslow_analysis::statistics::Dice;

    use super::chance;

    /// Stalls of `length` parts at these places, in each of which all requests are slow.
    fn stalled(stalls: &[usize], length: usize) -> Series {
        let mut series = Series::empty(200);
        for (part, count) in series.requests.iter_mut().enumerate() {
            *count = 10;
            let is_in = |stall: &usize| (part + 200 - stall) % 200 < length;
            series.errors[part] = 10 * u64::from(stalls.iter().any(is_in));
        }
        series
    }

    #[test]
    fn a_stall_at_any_other_time_is_chance_as_often_as_it_says() {
        let dice = &mut Dice::new(3);
        let runs = 2000;
        let fires = (0..runs).filter(|_| {
            let stalls = [dice.below(200), dice.below(200), dice.below(200)];
            let begin = dice.below(180);
            chance(&stalled(&stalls, 12), (begin, begin + 15)) <= 0.05
        });
        let share = fires.count() as f64 / f64::from(runs);
        assert!((0.02..0.08).contains(&share), "{share}");
    }

    #[test]
    fn one_that_begins_with_the_burst_is_none_also_where_it_lasts() {
        for length in [10, 20, 35] {
            let found = chance(&stalled(&[60], length), (60, 69));
            assert!(found <= 0.02, "{length}: {found}");
        }
        let before = chance(&stalled(&[50], 40), (60, 69));
        assert!(before > 0.2, "{before}");
    }
}
