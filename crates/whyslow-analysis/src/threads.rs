//! Names of threads and processes by id, and which of them belong to the tracer.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::tables::{ProcessRow, ThreadRow};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::scan::{Projection, in_order};

/// Threads and processes of the tracer, by recording-unique id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracers {
    pub(crate) utids: FxHashSet<i64>,
    pub(crate) upids: FxHashSet<i64>,
}

/// A process as answers name it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessName {
    pub(crate) pid: i64,
    pub(crate) comm: Option<String>,
    pub(crate) is_tracer: bool,
}

/// The processes and the tracer's threads: small tables, read once a question.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) processes: FxHashMap<i64, ProcessName>,
    pub(crate) tracers: Tracers,
}

impl Names {
    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut names = Names::default();
        let mut projection = Projection::new(ProcessRow::TABLE);
        let [upid, pid] = ["upid", "pid"].map(|name| projection.need(name));
        let (comm, is_tracer) = (projection.need("comm"), projection.need("is_tracer"));
        in_order(tables, &projection.scan(None), |batch| {
            let (upid, pid) = (upid.ints(batch)?, pid.ints(batch)?);
            let (comm, is_tracer) = (comm.texts(batch)?, is_tracer.bools(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let name = ProcessName {
                    pid: pid.at(row),
                    comm: comm.get(row).map(str::to_owned),
                    is_tracer: is_tracer.value(row as usize),
                };
                if name.is_tracer {
                    names.tracers.upids.insert(upid.at(row));
                }
                names.processes.insert(upid.at(row), name);
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utid, upid] = ["utid", "upid"].map(|name| projection.need(name));
        let is_tracer = projection.need("is_tracer");
        let mut threads = Vec::new();
        in_order(tables, &projection.scan(None), |batch| {
            let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
            let is_tracer = is_tracer.bools(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let owner = upid.get(row);
                threads.push((utid.at(row), owner));
                if is_tracer.value(row as usize) {
                    names.tracers.utids.insert(utid.at(row));
                    names.tracers.upids.extend(owner);
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        for (utid, owner) in threads {
            if owner.is_some_and(|upid| names.tracers.upids.contains(&upid)) {
                names.tracers.utids.insert(utid);
            }
        }
        Ok(names)
    }

    pub(crate) fn process(&self, upid: i64) -> Option<&ProcessName> {
        self.processes.get(&upid)
    }
}
