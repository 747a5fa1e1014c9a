//! Counters over time: of the machine, of processes, of file systems.

use std::collections::{BTreeMap, HashMap};

use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::session::Front;

/// Owner of a counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    Machine,
    /// By kernel id.
    Process(i64),
    /// By mount point.
    FileSystem(String),
}

/// Values in time order, recorded on change.
#[derive(Debug, Default)]
struct Series(Vec<(Ns, i64)>);

impl Series {
    fn before(&self, ts: Ns) -> Option<i64> {
        let after = self.0.partition_point(|(at, _)| *at <= ts);
        Some(self.0.get(after.checked_sub(1)?)?.1)
    }

    /// The last value before `ts`; before the first sample, the first value.
    fn at(&self, ts: Ns) -> Option<i64> {
        self.before(ts)
            .or_else(|| self.0.first().map(|(_, value)| *value))
    }

    /// The increase in (`begin`, `end`]. A decrease means that the counter was reset.
    fn growth(&self, (begin, end): (Ns, Ns), from_nothing: bool) -> i64 {
        let first = self.0.first().map_or(0, |(_, value)| *value);
        let mut last = self
            .before(begin)
            .unwrap_or(if from_nothing { 0 } else { first });
        let from = self.0.partition_point(|(at, _)| *at <= begin);
        let mut sum = 0i64;
        for (_, value) in self.0[from..].iter().take_while(|(at, _)| *at <= end) {
            let more = if *value >= last {
                value.saturating_sub(last)
            } else {
                *value
            };
            sum = sum.saturating_add(more);
            last = *value;
        }
        sum
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    series: HashMap<String, BTreeMap<Owner, Series>>,
}

impl Counters {
    /// These counters for the whole recording, since unchanged values are recorded only once.
    pub(crate) fn read(front: &Front<'_>, names: &[&str]) -> Result<Self, Failure> {
        let mut counters = Self::default();
        if !front.has("counter") {
            return Ok(counters);
        }
        let filter = Filter {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Filter::default()
        };
        let columns = ["ts_ns", "name", "value", "pid", "mount_point"];
        front.each_of_whole(Kind::Counters, filter, &columns, |row| {
            let (Some(name), Some(value)) = (row.text("name"), row.int("value")) else {
                return Ok(());
            };
            let owner = match (row.int("pid"), row.text("mount_point")) {
                (Some(pid), _) => Owner::Process(pid),
                (None, Some(place)) => Owner::FileSystem(place.to_owned()),
                (None, None) => Owner::Machine,
            };
            if !counters.series.contains_key(name) {
                counters.series.insert(name.to_owned(), BTreeMap::new());
            }
            if let Some(of_all) = counters.series.get_mut(name) {
                let ts = row.int("ts_ns").unwrap_or(0);
                of_all.entry(owner).or_default().0.push((ts, value));
            }
            Ok(())
        })?;
        Ok(counters)
    }

    /// The value at `ts`; before the first sample, the first value.
    pub(crate) fn at(&self, name: &str, owner: &Owner, ts: Ns) -> Option<i64> {
        self.series.get(name)?.get(owner)?.at(ts)
    }

    pub(crate) fn of_machine(&self, name: &str, ts: Ns) -> Option<i64> {
        self.at(name, &Owner::Machine, ts)
    }

    /// The increase in an interval; `from_nothing`: the counter started at zero.
    pub(crate) fn growth(
        &self,
        name: &str,
        owner: &Owner,
        part: (Ns, Ns),
        from_nothing: bool,
    ) -> Option<i64> {
        let series = self.series.get(name)?.get(owner)?;
        Some(series.growth(part, from_nothing))
    }

    /// Owners of this counter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &Owner> {
        self.series.get(name).into_iter().flat_map(BTreeMap::keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_and_growth_counts_from_where_it_began() {
        let series = Series(vec![(10, 5), (20, 7), (30, 2), (40, 3)]);
        let at = [0, 10, 19, 20, 99].map(|ts| series.at(ts));
        assert_eq!(at, [Some(5), Some(5), Some(5), Some(7), Some(3)]);
        assert_eq!(series.growth((0, 99), false), 2 + 2 + 1);
        assert_eq!(series.growth((0, 99), true), 5 + 2 + 2 + 1);
        assert_eq!(series.growth((10, 20), true), 2);
        assert_eq!(series.growth((20, 29), true), 0);
        let parts = [(0, 15), (15, 35), (35, 50)];
        let sum: i64 = parts.iter().map(|part| series.growth(*part, true)).sum();
        assert_eq!(sum, series.growth((0, 50), true));
        let none = Series::default();
        assert_eq!((none.at(5), none.growth((0, 9), true)), (None, 0));
    }
}
