use std::collections::{HashMap, HashSet};

use whyslow_model::Symbols;
use whyslow_model::tables::{ProcessRow, ThreadRow};
use whyslow_store::{StoreError, Tables, rows};

/// Names and ids of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) name: Option<String>,
    pub(crate) tid: i32,
    pub(crate) pid: Option<i32>,
    pub(crate) upid: Option<i32>,
    pub(crate) process: Option<String>,
    pub(crate) is_kernel: Option<bool>,
    /// Part of the recorder, which is not of interest.
    pub(crate) is_tracer: bool,
}

/// Names of all threads of a recording, read once.
#[derive(Debug)]
pub(crate) struct Names(pub(crate) HashMap<i32, Thread>);

impl Names {
    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, StoreError> {
        let mut symbols = Symbols::new();
        let has = |name: &str| {
            tables
                .info()
                .tables
                .get(name)
                .is_some_and(|table| table.rows > 0)
        };
        let processes: Vec<ProcessRow> = if has("process") {
            rows(tables, &mut symbols)?
        } else {
            Vec::new()
        };
        let threads: Vec<ThreadRow> = if has("thread") {
            rows(tables, &mut symbols)?
        } else {
            Vec::new()
        };
        let of_process: HashMap<i32, &ProcessRow> =
            processes.iter().map(|row| (row.upid, row)).collect();
        let of_tracer = |row: &&ProcessRow| row.is_tracer;
        let mut tracers: HashSet<i32> = processes
            .iter()
            .filter(of_tracer)
            .map(|row| row.upid)
            .collect();
        let threads_of_tracer = threads.iter().filter(|row| row.is_tracer);
        tracers.extend(threads_of_tracer.filter_map(|row| row.upid));
        let named = threads.iter().map(|row| {
            let process = row.upid.and_then(|upid| of_process.get(&upid));
            let thread = Thread {
                name: row.comm.map(|comm| symbols.get(comm).to_owned()),
                tid: row.tid,
                pid: row.pid,
                upid: row.upid,
                process: process
                    .and_then(|process| process.comm)
                    .map(|comm| symbols.get(comm).to_owned()),
                is_kernel: row.is_kernel,
                is_tracer: row.is_tracer || row.upid.is_some_and(|upid| tracers.contains(&upid)),
            };
            (row.utid, thread)
        });
        Ok(Self(named.collect()))
    }
}
