//! Threads by number.

use rustc_hash::FxHashMap;

use super::Utid;

#[derive(Debug, Clone, Default)]
pub(crate) struct Person {
    pub(crate) tid: i32,
    pub(crate) pid: Option<i32>,
    pub(crate) upid: Option<i32>,
    pub(crate) comm: String,
    pub(crate) is_kernel: bool,
    /// Belongs to the recorder or tracer.
    pub(crate) is_tracer: bool,
}

#[derive(Debug, Default)]
pub(crate) struct People {
    pub(super) by_utid: FxHashMap<Utid, Person>,
    /// Name of the main thread of each process.
    pub(super) processes: FxHashMap<i32, String>,
}

impl People {
    pub(crate) fn get(&self, utid: Utid) -> Option<&Person> {
        self.by_utid.get(&utid)
    }

    pub(crate) fn comm(&self, utid: Utid) -> &str {
        self.get(utid).map_or("", |person| &person.comm)
    }

    /// Name of the process of a thread.
    pub(crate) fn process_comm(&self, utid: Utid) -> &str {
        let upid = self.get(utid).and_then(|person| person.upid);
        let comm = upid.and_then(|upid| self.processes.get(&upid));
        comm.map_or_else(|| self.comm(utid), String::as_str)
    }

    pub(crate) fn same_process(&self, a: Utid, b: Utid) -> bool {
        a == b
            || match (self.get(a), self.get(b)) {
                (Some(a), Some(b)) => a.upid.is_some() && a.upid == b.upid,
                _ => false,
            }
    }

    pub(crate) fn is_kernel(&self, utid: Utid) -> bool {
        self.get(utid).is_some_and(|person| person.is_kernel)
    }
}
