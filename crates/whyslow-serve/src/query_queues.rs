use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::args::ServeArgs;
use crate::limited::Resident;
use crate::query_queue::{Costs, QueryQueue};

/// Explanations may take this many times as long as other queries.
pub(crate) const EXPLAIN_TIMES: u32 = 10;

/// Queues of queries, by how long these may take.
pub(crate) struct QueryQueues {
    pub(crate) usual: Arc<QueryQueue>,
    pub(crate) quick: Arc<QueryQueue>,
    pub(crate) slow: Arc<QueryQueue>,
    pub(crate) resident: Arc<Resident>,
}

impl QueryQueues {
    pub(crate) fn new(args: &ServeArgs, is_over: &Arc<AtomicBool>) -> Self {
        let resident = Arc::new(Resident::new());
        let costs = Costs {
            time: args.query_time,
            memory_bytes: args.query_memory.max(0) as u64,
        };
        let patient = Costs {
            time: args.query_time.saturating_mul(EXPLAIN_TIMES),
            ..costs
        };
        let queue = |places, costs| {
            let common = (Arc::clone(&resident), Arc::clone(is_over));
            Arc::new(QueryQueue::new(places, costs, common))
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            usual: queue(cpus, costs),
            quick: queue(cpus * 2, costs),
            slow: queue(1, patient),
            resident: Arc::clone(&resident),
        }
    }
}
