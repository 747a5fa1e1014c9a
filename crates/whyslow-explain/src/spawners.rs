//! Threads that start many short-lived processes. Each of these uses a CPU for a moment, and only
//! together do they matter: then the thread that starts them is the culprit. A few processes are
//! named themselves, however young they are.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::blame_target::{BlameTarget, BlamedInterval};
use crate::window_slice::{ThreadTable, Utid};

/// Fewer children of a thread in one walk are named themselves.
const CHILDREN_MIN: usize = 5;

/// The number of short-lived processes by the thread that started them.
#[derive(Debug, Default)]
pub(crate) struct Spawners(FxHashMap<Utid, u32>);

impl Spawners {
    /// Of the processes that had a CPU for which a thread of the walk was queued.
    pub(crate) fn of(table: &ThreadTable, root: Utid, intervals: &[BlamedInterval]) -> Self {
        let mut children: FxHashMap<Utid, FxHashSet<i32>> = FxHashMap::default();
        for interval in intervals {
            let BlameTarget::Thread(utid) = interval.reason.target else {
                continue;
            };
            if interval.reason.mechanism != "cpu_runqueue" {
                continue;
            }
            let upid = table.get(utid).and_then(|thread_info| thread_info.upid);
            if let (Some(spawner), Some(upid)) = (table.spawner(utid), upid)
                && !table.same_process(spawner, root)
            {
                children.entry(spawner).or_default().insert(upid);
            }
        }
        let many = children
            .into_iter()
            .map(|(spawner, of)| (spawner, of.len()));
        let many = many.filter(|(_, count)| *count >= CHILDREN_MIN);
        Self(
            many.map(|(spawner, count)| (spawner, count as u32))
                .collect(),
        )
    }

    /// The thread that started this one and many others, and their number.
    pub(crate) fn of_child(&self, table: &ThreadTable, utid: Utid) -> Option<(Utid, u32)> {
        if self.0.is_empty() {
            return None;
        }
        let spawner = table.spawner(utid)?;
        self.0.get(&spawner).map(|count| (spawner, *count))
    }
}
