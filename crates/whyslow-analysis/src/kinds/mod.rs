//! What is measured: each kind declares its table, measures, keys and row columns.
//!
//! This module lists all kinds. The kinds use [`crate::spec`] and each other, but not the list; the
//! engine (context, filter, grouping, rows) uses neither.

mod block;
mod counters;
mod cpu;
mod dns;
mod files;
mod functions;
mod gaps;
mod io;
mod irq;
mod locks;
mod mem;
mod name_servers;
mod net;
mod requests;
mod resources;
mod runtime;
mod sched;
mod signals;
mod stacks;
mod states;
mod syscalls;
mod tcp;
mod threads;
mod usdt;
mod work;
mod work_items;

pub(crate) use block::BLOCK;
pub(crate) use cpu::SLICES;
pub(crate) use dns::LOOKUPS;
pub(crate) use files::{DESCRIPTORS, FILES, FILLS, LIVES, MAPPINGS};
pub(crate) use gaps::GAPS;
pub(crate) use io::IO;
pub(crate) use irq::IRQ;
pub(crate) use locks::LOCKS;
pub(crate) use mem::{PAGES, RECLAIM};
pub(crate) use net::PACKETS;
pub(crate) use requests::{PHASES, REQUESTS, WORKERS, is_failure};
pub(crate) use runtime::RUNTIME;
pub(crate) use sched::SCHED;
pub(crate) use stacks::STACKS;
pub(crate) use states::STATES;
pub(crate) use syscalls::SYSCALLS;
pub(crate) use threads::THREADS;

use crate::query::Kind;
use crate::spec::Topic;

/// All kinds.
pub static TOPICS: [&Topic; 26] = [
    &io::TOPIC,
    &block::TOPIC,
    &files::TOPIC,
    &sched::TOPIC,
    &threads::TOPIC,
    &states::TOPIC,
    &cpu::TOPIC,
    &irq::TOPIC,
    &syscalls::TOPIC,
    &mem::TOPIC,
    &work::TOPIC,
    &work_items::TOPIC,
    &net::TOPIC,
    &tcp::TOPIC,
    &signals::TOPIC,
    &dns::TOPIC,
    &name_servers::TOPIC,
    &requests::TOPIC,
    &functions::TOPIC,
    &usdt::TOPIC,
    &locks::TOPIC,
    &stacks::TOPIC,
    &gaps::TOPIC,
    &runtime::TOPIC,
    &resources::TOPIC,
    &counters::TOPIC,
];

impl Kind {
    pub(crate) fn topic(self) -> &'static Topic {
        let mut topics = TOPICS.iter();
        topics
            .find(|topic| topic.kind == self)
            .expect("every kind has a topic")
    }
}
