//! Ranges of lost events by CPU, with the number of events lost in each.

use whyslow_model::Ns;
use whyslow_model::event::{Loss, LossKind};

use crate::limits::CPUS_MAX;

/// Maximum number of ranges kept per CPU. Above it the older half is merged into one.
const RANGES_MAX: usize = 1 << 15;
/// Stands for a number that the source does not report.
const MANY: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    begin: Ns,
    end: Ns,
    count: u64,
}

/// Disjoint, sorted by time.
#[derive(Debug, Default)]
struct Ranges(Vec<Range>);

#[derive(Debug, Default)]
pub(super) struct LossRanges {
    cpus: Vec<Ranges>,
    /// Of streams that belong to no CPU, or to several.
    others: Ranges,
    /// All of them.
    all: Ranges,
}

impl LossRanges {
    pub(super) fn add(&mut self, loss: &Loss<'_>) {
        let count = match (loss.kind, loss.count) {
            (LossKind::Events, Some(count)) => u64::try_from(count).unwrap_or(0),
            // A packet has many events, and bytes may be of many.
            _ => MANY,
        };
        let range = Range {
            begin: loss.ts,
            end: loss.ts_end.unwrap_or(loss.ts).max(loss.ts),
            count,
        };
        self.all.add(range);
        match loss.cpu.and_then(|cpu| usize::try_from(cpu).ok()) {
            Some(cpu) if cpu < CPUS_MAX => {
                if self.cpus.len() <= cpu {
                    self.cpus.resize_with(cpu + 1, Ranges::default);
                }
                self.cpus[cpu].add(range);
            }
            _ => self.others.add(range),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.0.is_empty()
    }

    /// Maximum number of events that were lost within `since..until` on any of these CPUs; `None`
    /// among them stands for all CPUs.
    pub(super) fn count_between(&self, cpus: &[Option<i32>], since: Ns, until: Ns) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let numbers: Option<Vec<usize>> = cpus
            .iter()
            .map(|cpu| cpu.and_then(|cpu| usize::try_from(cpu).ok()))
            .collect();
        let Some(mut numbers) = numbers else {
            return self.all.count_between(since, until);
        };
        numbers.sort_unstable();
        numbers.dedup();
        let of_cpus = numbers.into_iter().filter_map(|cpu| self.cpus.get(cpu));
        of_cpus.fold(self.others.count_between(since, until), |sum, ranges| {
            sum.saturating_add(ranges.count_between(since, until))
        })
    }

    /// Whether a range of the CPU starts before this time and ends after it.
    pub(super) fn covers(&self, cpu: Option<i32>, ts: Ns) -> bool {
        let of_cpu = cpu
            .and_then(|cpu| usize::try_from(cpu).ok())
            .and_then(|cpu| self.cpus.get(cpu));
        of_cpu.is_some_and(|ranges| ranges.covers(ts)) || self.others.covers(ts)
    }
}

impl Ranges {
    /// Overlapping ranges become one.
    fn add(&mut self, mut range: Range) {
        let first = self.0.partition_point(|known| known.end < range.begin);
        let behind = self.0.partition_point(|known| known.begin <= range.end);
        for known in self.0.drain(first..behind.max(first)) {
            range.begin = range.begin.min(known.begin);
            range.end = range.end.max(known.end);
            range.count = range.count.saturating_add(known.count);
        }
        self.0.insert(first, range);
        if self.0.len() > RANGES_MAX {
            let old = self.0.drain(..RANGES_MAX / 2);
            let old = old.reduce(|one, other| Range {
                begin: one.begin,
                end: other.end,
                count: one.count.saturating_add(other.count),
            });
            self.0.splice(..0, old);
        }
    }

    /// A loss at one time counts if it is inside; a range also if it only overlaps.
    fn count_between(&self, since: Ns, until: Ns) -> u64 {
        let first = self.0.partition_point(|range| range.end <= since);
        let ranges = self.0[first..].iter();
        ranges
            .take_while(|range| range.begin < until)
            .fold(0, |sum, range| sum.saturating_add(range.count))
    }

    fn covers(&self, ts: Ns) -> bool {
        let first = self.0.partition_point(|range| range.end <= ts);
        self.0.get(first).is_some_and(|range| range.begin < ts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss<'a>(cpu: Option<i32>, (ts, ts_end): (Ns, Ns), count: Option<i64>) -> Loss<'a> {
        Loss {
            ts,
            ts_end: Some(ts_end),
            cpu,
            stream: "",
            kind: LossKind::Events,
            count,
        }
    }

    #[test]
    fn ranges_count_where_they_overlap() {
        let mut ranges = LossRanges::default();
        assert_eq!(ranges.count_between(&[None], 0, 100), 0);
        ranges.add(&loss(Some(1), (10, 20), Some(3)));
        ranges.add(&loss(Some(2), (30, 30), Some(1)));
        ranges.add(&loss(Some(1), (15, 25), Some(4)));
        let count = |cpus: &[Option<i32>], since, until| ranges.count_between(cpus, since, until);
        assert_eq!(count(&[Some(1)], 24, 90), 7);
        assert_eq!(count(&[Some(1)], 25, 90), 0);
        assert_eq!(count(&[Some(1), Some(1)], 0, 11), 7);
        assert_eq!(count(&[Some(0)], 0, 90), 0);
        assert_eq!(count(&[Some(1), Some(2)], 0, 90), 8);
        assert_eq!(count(&[Some(2)], 30, 90), 0);
        assert_eq!(count(&[Some(0), None], 0, 90), 8);
        assert!(ranges.covers(Some(1), 11) && !ranges.covers(Some(1), 10));
        assert!(!ranges.covers(Some(2), 11));
    }

    #[test]
    fn a_loss_without_cpu_or_number_counts_for_all() {
        let mut ranges = LossRanges::default();
        ranges.add(&loss(None, (10, 20), None));
        assert_eq!(ranges.count_between(&[Some(7)], 0, 90), MANY);
        assert!(ranges.covers(Some(7), 15));
    }

    #[test]
    fn very_many_ranges_are_merged_from_the_oldest_on() {
        let mut ranges = Ranges::default();
        for number in 0..=RANGES_MAX as Ns {
            ranges.add(Range {
                begin: 10 * number,
                end: 10 * number + 1,
                count: 1,
            });
        }
        assert!(ranges.0.len() < RANGES_MAX);
        assert_eq!(ranges.count_between(0, Ns::MAX), RANGES_MAX as u64 + 1);
    }
}
