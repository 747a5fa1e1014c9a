//! Time by thread, state and stack: the data of most profile formats.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_store::Tables;

use crate::ExportError;
use crate::stacks::{About, Callsites, Mark, StackQuery, each_sum};

/// A thread as shown in profiles.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub(crate) comm: String,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

impl Thread {
    /// `java 812/831`.
    pub(crate) fn label(&self) -> String {
        match (self.pid, self.tid) {
            (Some(pid), Some(tid)) if pid != tid => format!("{} {pid}/{tid}", self.comm),
            (_, Some(tid)) => format!("{} {tid}", self.comm),
            (Some(pid), None) => format!("{} {pid}", self.comm),
            (None, None) => self.comm.clone(),
        }
    }
}

/// A stack, and why it has no sample.
pub(crate) type Place = (Option<i64>, Option<Mark>);

/// Equal stacks of one thread in one state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    pub(crate) time: Ns,
    pub(crate) count: i64,
}

pub(crate) struct Profile {
    pub(crate) callsites: Callsites,
    /// By thread, state and stack, in that order.
    pub(crate) weights: BTreeMap<(usize, Option<String>, Place), Weight>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) about: About,
}

impl Profile {
    pub(crate) fn read(tables: &dyn Tables, query: &StackQuery) -> Result<Self, ExportError> {
        let callsites = Callsites::read(tables)?;
        let mut threads = Threads::default();
        let mut weights: BTreeMap<_, Weight> = BTreeMap::new();
        let about = each_sum(tables, query, &mut |sample, count| {
            let thread = threads.place(sample.comm, sample.pid, sample.tid);
            let state = sample.state.map(str::to_owned);
            let weight = weights.entry((thread, state, sample.place())).or_default();
            weight.time = weight.time.saturating_add(sample.dur);
            weight.count += count;
        })?;
        Ok(Self {
            callsites,
            weights,
            threads: threads.all,
            about,
        })
    }
}

/// Threads in the order of their first sample.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) all: Vec<Thread>,
    known: FxHashMap<Thread, usize>,
}

impl Threads {
    pub(crate) fn place(
        &mut self,
        comm: Option<&str>,
        pid: Option<i64>,
        tid: Option<i64>,
    ) -> usize {
        let thread = Thread {
            comm: comm.unwrap_or("?").to_owned(),
            pid,
            tid,
        };
        if let Some(place) = self.known.get(&thread) {
            return *place;
        }
        self.all.push(thread.clone());
        self.known.insert(thread, self.all.len() - 1);
        self.all.len() - 1
    }
}
