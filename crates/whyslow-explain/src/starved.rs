//! Threads that were runnable but did not run, or waited for disks outside of system calls (page
//! faults). None of their calls is slow, but the threads are.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{ThreadRow, ThreadStateRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

/// Shorter waits are usual on a busy machine.
const WAIT_MIN_NS: Ns = 5_000_000;
/// Minimum share of the waits in the time from the first to the last …
const SHARE_MIN: f64 = 0.1;
/// … and their minimum sum.
const TOTAL_MIN_NS: Ns = 50_000_000;
/// Longer windows are cut to this, from the longest wait on.
const WINDOW_MAX_NS: Ns = 10_000_000_000;

/// A thread with many waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Starved {
    pub(crate) utid: i32,
    pub(crate) tid: i32,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) total: Ns,
    pub(crate) waits: u64,
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    tid: i32,
    begin: Ns,
    end: Ns,
    total: Ns,
    waits: u64,
    longest: (Ns, Ns),
}

/// User threads with the longest total wait, the longest first.
pub(crate) fn threads(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<Vec<Starved>, AnalysisError> {
    let skipped = skipped(tables)?;
    let mut projection = Projection::new(ThreadStateRow::TABLE);
    let [ts, dur, utid, tid] = ["ts", "dur", "utid", "tid"].map(|name| projection.need(name));
    let state = projection.need("state");
    let mut sums: FxHashMap<i32, Sum> = FxHashMap::default();
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, dur, utid) = (ts.ints(batch)?, dur.ints(batch)?, utid.ints(batch)?);
        let (tid, state) = (tid.ints(batch)?, state.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let (Some(dur), Some(utid)) = (dur.get(row), utid.get(row)) else {
                continue;
            };
            let begin = ts.at(row);
            let is_wait = dur >= WAIT_MIN_NS
                && matches!(state.get(row), Some("runnable" | "uninterruptible"))
                && window.is_none_or(|window| window.contains(begin));
            if !is_wait || skipped.contains(&(utid as i32)) {
                continue;
            }
            let sum = sums.entry(utid as i32).or_insert(Sum {
                tid: tid.or_zero(row) as i32,
                begin,
                end: begin,
                total: 0,
                waits: 0,
                longest: (0, begin),
            });
            sum.end = sum.end.max(begin + dur);
            sum.total += dur;
            sum.waits += 1;
            sum.longest = sum.longest.max((dur, begin));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found: Vec<Starved> = sums.into_iter().filter_map(starved).collect();
    found.index_sort_by_key(|thread| (std::cmp::Reverse(thread.total), thread.utid));
    Ok(found)
}

fn starved((utid, sum): (i32, Sum)) -> Option<Starved> {
    let length = (sum.end - sum.begin).max(1);
    let is_much = sum.total >= TOTAL_MIN_NS && sum.total as f64 >= SHARE_MIN * length as f64;
    let (begin, end) = if length > WINDOW_MAX_NS {
        let begin = sum.longest.1.min(sum.end - WINDOW_MAX_NS).max(sum.begin);
        (begin, begin + WINDOW_MAX_NS)
    } else {
        (sum.begin, sum.end)
    };
    is_much.then_some(Starved {
        utid,
        tid: sum.tid,
        begin,
        end,
        total: sum.total,
        waits: sum.waits,
    })
}

/// Kernel threads and threads of the recorder.
fn skipped(tables: &dyn Tables) -> Result<FxHashSet<i32>, AnalysisError> {
    let mut projection = Projection::new(ThreadRow::TABLE);
    let utid = projection.need("utid");
    let flags = ["is_kernel", "is_tracer"].map(|name| projection.need(name));
    let mut found = FxHashSet::default();
    in_order(tables, &projection.scan(None), |batch| {
        let utid = utid.ints(batch)?;
        for flag in flags {
            let flag = flag.bools(batch)?;
            for (row, is_set) in flag.iter().enumerate() {
                if is_set == Some(true) {
                    found.insert(utid.at(row as u32) as i32);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
