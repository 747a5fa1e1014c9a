use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::args::ServeArgs;
use crate::desk::{Costs, Desk};
use crate::limited::Resident;

/// An explanation may take so many times as long as another question.
pub(crate) const EXPLAIN_TIMES: u32 = 10;

/// Where questions wait, by how long they may take.
pub(crate) struct Desks {
    pub(crate) usual: Arc<Desk>,
    pub(crate) quick: Arc<Desk>,
    pub(crate) slow: Arc<Desk>,
    pub(crate) resident: Arc<Resident>,
}

impl Desks {
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
        let desk = |places, costs| {
            let common = (Arc::clone(&resident), Arc::clone(is_over));
            Arc::new(Desk::new(places, costs, common))
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            usual: desk(cpus, costs),
            quick: desk(cpus * 2, costs),
            slow: desk(1, patient),
            resident: Arc::clone(&resident),
        }
    }
}
