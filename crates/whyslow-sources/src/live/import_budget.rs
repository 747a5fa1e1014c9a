//! Limits what importing the last minute again and again costs.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Importing takes at most one part in `SHARE` of the time of one CPU.
const SHARE: u32 = 5;
/// If an import would take longer, fewer spools are imported, to keep the view up to date.
const IMPORT_MAX: Duration = Duration::from_secs(6);
/// Below this, the cost of a byte cannot be measured.
const MEASURABLE: Duration = Duration::from_secs(1);
const SPOOLS_MIN: usize = 2;

/// Costs are CPU time, because other programs lengthen elapsed time: exactly on a busy machine, the view
/// would be short and rare. They are predicted from sizes, because spools differ: after a burst,
/// all of a calm minute is affordable.
#[derive(Debug, Default)]
pub(super) struct ImportBudget {
    /// Cost of a byte of a spool, ns, of the last import that was long enough; 0 if there was none.
    ns_per_byte: f64,
}

impl ImportBudget {
    /// Records what an import cost. Returns how long after its start the next one may start.
    pub(super) fn spend(&mut self, bytes: u64, cost: Duration) -> Duration {
        if cost >= MEASURABLE {
            self.ns_per_byte = cost.as_nanos() as f64 / bytes.max(1) as f64;
        }
        cost * SHARE
    }

    /// Number of spools to import, of spools with these sizes.
    pub(super) fn affordable(&self, newest_first: impl Iterator<Item = u64>) -> usize {
        let mut bytes = 0;
        let is_affordable = |(count, size): &(usize, u64)| {
            bytes += size;
            let cost = bytes as f64 * self.ns_per_byte;
            *count < SPOOLS_MIN || cost <= IMPORT_MAX.as_nanos() as f64
        };
        newest_first.enumerate().take_while(is_affordable).count()
    }
}

/// CPU time of the calling thread, which does most of the work of an import.
pub(super) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    fn after(bytes: u64, cost: Duration) -> ImportBudget {
        let mut budget = ImportBudget::default();
        budget.spend(bytes, cost);
        budget
    }

    #[test]
    fn all_spools_are_imported_until_imports_take_long() {
        let check = |budget: &ImportBudget| {
            assert_eq!(budget.affordable([50 * MB; 20].into_iter()), 20);
        };
        check(&ImportBudget::default());
        check(&after(MB / 10, SECOND / 5));
        check(&after(1_000 * MB, 6 * SECOND));
    }

    #[test]
    fn what_costs_too_much_is_cut_shorter() {
        let budget = after(60 * MB, 6 * SECOND);
        assert_eq!(budget.affordable([10 * MB; 20].into_iter()), 6);
        assert_eq!(budget.affordable([500 * MB; 20].into_iter()), SPOOLS_MIN);
        assert_eq!(budget.affordable([500 * MB].into_iter()), 1);
        assert_eq!(budget.affordable([].into_iter()), 0);
    }

    #[test]
    fn a_burst_shortens_only_what_contains_it() {
        let mut budget = after(200 * MB, 20 * SECOND);
        let calm = [MB; 19];
        let with_burst = calm[..3].iter().chain(&[200 * MB]).chain(&calm).copied();
        assert_eq!(budget.affordable(with_burst), 3);
        assert_eq!(budget.affordable(calm.into_iter()), 19);
        // A cheap import does not show the cost of a byte.
        budget.spend(1_000, SECOND / 10);
        assert_eq!(budget.affordable(calm.into_iter()), 19);
    }

    #[test]
    fn the_next_import_waits_for_its_share() {
        let mut budget = ImportBudget::default();
        assert_eq!(budget.spend(MB, 2 * SECOND), 10 * SECOND);
    }
}
