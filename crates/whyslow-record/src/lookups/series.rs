//! Counters by host and resolver.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::lookup::Outcome;

use super::counts::{BUCKETS, Counts, Host};

/// Maximum number of series, as each is two dozen lines for a collector to store; further ones are
/// merged.
const SERIES_MAX: usize = 1_000;
/// Hosts beyond the limit.
const OTHERS: &str = "(other)";

/// Counters, which never decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupSeries {
    /// As passed to the resolver; `(other)` for all hosts beyond the limit.
    pub host: String,
    /// Addresses of name servers; empty if unknown.
    pub resolver: String,
    counts: Counts,
}

impl LookupSeries {
    /// Number of lookups per result, by the C library's name for it; `ok` if a name was found.
    pub fn results(&self) -> BTreeMap<String, u64> {
        let mut results = BTreeMap::new();
        for (place, count) in self.counts.results.iter().enumerate() {
            if *count > 0 {
                *results.entry(word(place)).or_default() += count;
            }
        }
        results
    }

    /// Lookups in each bucket of [`super::LOOKUP_EDGES`]; last those above all edges.
    pub fn buckets(&self) -> &[u64; BUCKETS] {
        &self.counts.buckets
    }

    /// Number of lookups.
    pub fn count(&self) -> u64 {
        self.counts.count()
    }

    /// Sum of their latencies in ns.
    pub fn sum_ns(&self) -> u64 {
        self.counts.sum_ns
    }

    /// Lookups that took at least the timeout of a query.
    pub fn timeouts(&self) -> u64 {
        self.counts.timeouts
    }
}

/// Name of a result, by its index in the counters (`lookups.bpf.c`).
fn word(place: usize) -> String {
    const ERRNOS: [i32; 5] = [2, 11, 12, 22, 34];
    let number = i32::try_from(place).unwrap_or(i32::MAX);
    let outcome = match place {
        0..=12 => Outcome::Eai(-number),
        13..=18 => Outcome::HErrno(number - 14),
        19..=23 => Outcome::Errno(ERRNOS[place - 19]),
        24 => Outcome::Unreported,
        _ => return "other".to_owned(),
    };
    outcome.name().into_owned()
}

#[derive(Debug, Default)]
pub(super) struct All {
    /// The kernel's counters at the last reading.
    before: FxHashMap<Host, Counts>,
    others: Option<Counts>,
    series: BTreeMap<(String, String), LookupSeries>,
}

impl All {
    /// Adds the increase of the kernel's counters of a host. Returns whether there is one.
    pub(super) fn take(
        &mut self,
        host: Host,
        now: Counts,
        resolver: impl FnOnce(u32) -> String,
    ) -> bool {
        let new = match self.before.get(&host) {
            Some(before) if *before == now => return false,
            Some(before) => now.since(before),
            None => now.clone(),
        };
        let name = String::from_utf8_lossy(&host.name).into_owned();
        let key = (name, resolver(host.mount_ns));
        self.before.insert(host, now);
        self.add(key, &new);
        true
    }

    /// The same for the hosts beyond the kernel's limit.
    pub(super) fn take_others(&mut self, now: Counts) {
        let new = now.since(self.others.as_ref().unwrap_or(&Counts::ZERO));
        if new != Counts::ZERO {
            self.add((OTHERS.to_owned(), String::new()), &new);
        }
        self.others = Some(now);
    }

    /// The kernel no longer counts this host.
    pub(super) fn forget(&mut self, host: &Host) {
        self.before.remove(host);
    }

    fn add(&mut self, key: (String, String), new: &Counts) {
        let fits = self.series.len() < SERIES_MAX || self.series.contains_key(&key);
        let (host, resolver) = if fits {
            key
        } else {
            (OTHERS.to_owned(), String::new())
        };
        let series = self
            .series
            .entry((host.clone(), resolver.clone()))
            .or_insert_with(|| LookupSeries {
                host,
                resolver,
                counts: Counts::ZERO,
            });
        series.counts = series.counts.and(new);
    }

    pub(super) fn series(&self) -> Vec<&LookupSeries> {
        self.series.values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::RESULTS;
    use super::*;

    fn host(mount_ns: u32, name: &str) -> Host {
        Host {
            mount_ns,
            name: name.as_bytes().into(),
        }
    }

    fn counts(count: u64) -> Counts {
        let mut counts = Counts::ZERO;
        counts.results[0] = count;
        counts.buckets[3] = count;
        counts.sum_ns = count * 900_000;
        counts
    }

    fn listed(all: &All) -> Vec<(&str, &str, u64)> {
        let series = all.series().into_iter();
        let listed = series.map(|one| (one.host.as_str(), one.resolver.as_str(), one.count()));
        listed.collect()
    }

    #[test]
    fn what_came_since_belongs_to_who_is_asked_now() {
        let mut all = All::default();
        let by = |name: &'static str| move |_: u32| name.to_owned();
        all.take(host(1, "db"), counts(7), by("10.0.0.1"));
        all.take(host(2, "db"), counts(5), by("10.0.0.1"));
        assert_eq!(listed(&all), [("db", "10.0.0.1", 12)]);
        all.take(host(1, "db"), counts(10), by("10.0.0.2"));
        // Without an increase the resolver is not looked up.
        let is_new = all.take(host(2, "db"), counts(5), |_| panic!("not called"));
        assert!(!is_new);
        assert_eq!(
            listed(&all),
            [("db", "10.0.0.1", 12), ("db", "10.0.0.2", 3)]
        );
        // Its namespace is gone, and another one has the same number.
        all.forget(&host(1, "db"));
        all.take(host(1, "db"), counts(2), by("10.0.0.1"));
        assert_eq!(listed(&all)[0], ("db", "10.0.0.1", 14));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_together() {
        let mut all = All::default();
        for number in 0..SERIES_MAX + 3 {
            let name = format!("h{number}");
            all.take(host(1, &name), counts(1), |_| "10.0.0.1".to_owned());
        }
        all.take_others(counts(4));
        all.take_others(counts(9));
        all.take_others(counts(9));
        assert_eq!(all.series().len(), SERIES_MAX + 1);
        assert_eq!(listed(&all)[0], ("(other)", "", 12));
    }

    #[test]
    fn each_result_has_the_word_of_the_c_library() {
        let words: Vec<String> = (0..RESULTS).map(word).collect();
        let at = |place: usize| words[place].as_str();
        assert_eq!((at(0), at(3), at(12)), ("ok", "EAI_AGAIN", "EAI_OVERFLOW"));
        assert_eq!((at(13), at(15)), ("NETDB_INTERNAL", "HOST_NOT_FOUND"));
        assert_eq!((at(16), at(18)), ("TRY_AGAIN", "NO_DATA"));
        assert_eq!((at(19), at(23)), ("ENOENT", "ERANGE"));
        assert_eq!((at(24), at(25)), ("failed", "other"));
        let mut series = LookupSeries {
            host: String::new(),
            resolver: String::new(),
            counts: Counts::ZERO,
        };
        series.counts.results = std::array::from_fn(|place| place as u64);
        let results = series.results();
        assert_eq!(results.values().sum::<u64>(), (0..RESULTS as u64).sum());
        assert_eq!(results["EAI_AGAIN"], 3);
    }
}
