//! Sleeps in which a thread waits for work: those of idle kernel threads, and those in system calls
//! that wait for work.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::syscall::waits::waits_for_work;
use whyslow_model::tables::{SyscallRow, ThreadRow};
use whyslow_model::text::grouped;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::query::Query;
use crate::scan::Projection;
use crate::spec::WaitRows;

/// States in which a thread may wait for work; uninterruptible sleeps wait for something else.
pub(crate) const SLEEPS: [&str; 3] = ["sleeping", "idle", "parked"];
/// Maximum number of calls that are kept: 16 bytes each.
const CALLS_MAX: usize = 4_000_000;

#[derive(Debug, Default)]
pub(crate) struct IdleSleeps {
    kernel_threads: FxHashSet<i64>,
    /// Calls of each thread that wait for work, in order of start.
    calls: FxHashMap<i64, Vec<(Ns, Ns)>>,
    /// Whether there are more calls than are kept.
    is_cut: bool,
}

impl IdleSleeps {
    /// Whether the query leaves out such sleeps.
    pub(crate) fn are_left_out(query: &Query) -> bool {
        let mut views = query.kind.topic().views.iter();
        let Some(view) = views.find(|view| view.verb == query.verb) else {
            return false;
        };
        let waits = view.spec.hooks.waits;
        let are_states = |waits: &crate::spec::Waits| {
            waits.rows == WaitRows::States && waits.views.contains(&query.verb)
        };
        waits.as_ref().is_some_and(are_states) && !query.selects_waits(view.spec)
    }

    pub(crate) fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self, AnalysisError> {
        let mut sleeps = Self {
            kernel_threads: kernel_threads(tables)?,
            ..Self::default()
        };
        sleeps.read_calls(tables, window)?;
        Ok(sleeps)
    }

    fn read_calls(
        &mut self,
        tables: &dyn Tables,
        window: Option<Window>,
    ) -> Result<(), AnalysisError> {
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ts, ts_end, utid] = ["ts", "ts_end", "utid"].map(|name| projection.need(name));
        let [name, class, path, cut] =
            ["name", "fd_class", "path", "cut"].map(|name| projection.need(name));
        let mut count = 0;
        in_order(tables, &projection.scan(window), |batch| {
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let (name, class) = (name.texts(batch)?, class.texts(batch)?);
            let (path, cut) = (path.texts(batch)?, cut.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let (Some(utid), Some(name)) = (utid.get(row), name.get(row)) else {
                    continue;
                };
                // What else is read depends on how the rows are stored.
                let is_inside = window.is_none_or(|it| it.overlaps(ts.at(row), ts_end.get(row)));
                if !is_inside || !waits_for_work(name, class.get(row), path.get(row)) {
                    continue;
                }
                count += 1;
                if count > CALLS_MAX {
                    self.calls.clear();
                    self.is_cut = true;
                    return Ok(ControlFlow::Break(()));
                }
                let of_thread = self.calls.entry(utid).or_default();
                let is_first = of_thread.is_empty() && cut.get(row) == Some("begin");
                let begin = if is_first { Ns::MIN } else { ts.at(row) };
                of_thread.push((begin, ts_end.get(row).unwrap_or(Ns::MAX)));
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Whether a sleep of this thread that begins at this time is a wait for work.
    pub(crate) fn holds(&self, utid: i64, ts: Ns) -> bool {
        self.kernel_threads.contains(&utid)
            || self.calls.get(&utid).is_some_and(|calls| {
                let after = calls.partition_point(|(begin, _)| *begin <= ts);
                after > 0 && ts < calls[after - 1].1
            })
    }

    /// A caveat if there are too many calls.
    pub(crate) fn note(&self) -> Option<String> {
        self.is_cut.then(|| {
            format!(
                "sleeps in system calls that wait for work are included: there are more than {} \
                 such calls; select a window with -w",
                grouped(CALLS_MAX as u64)
            )
        })
    }
}

fn kernel_threads(tables: &dyn Tables) -> Result<FxHashSet<i64>, AnalysisError> {
    let mut projection = Projection::new(ThreadRow::TABLE);
    let (utid, is_kernel) = (projection.need("utid"), projection.need("is_kernel"));
    let mut found = FxHashSet::default();
    in_order(tables, &projection.scan(None), |batch| {
        let (utid, is_kernel) = (utid.ints(batch)?, is_kernel.bools(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let known = arrow_array::Array::is_valid(is_kernel, row as usize);
            if known && is_kernel.value(row as usize) {
                found.insert(utid.at(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_belongs_to_the_last_call_that_began_before_it() {
        let idle = IdleSleeps {
            calls: FxHashMap::from_iter([(7, vec![(Ns::MIN, 5), (10, 20), (30, Ns::MAX)])]),
            kernel_threads: FxHashSet::from_iter([2]),
            is_cut: false,
        };
        let held = |ts: Ns| idle.holds(7, ts);
        assert_eq!(
            [0, 4, 5, 9, 10, 19, 20, 29, 30, 1_000].map(held),
            [
                true, true, false, false, true, true, false, false, true, true
            ]
        );
        assert!(!idle.holds(8, 12), "another thread");
        assert!(idle.holds(2, 12), "a kernel thread");
    }
}
