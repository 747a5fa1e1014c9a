//! Which pattern of slowness the calls of a recording show: reads the input of [`crate::patterns`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, Uncertain, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{MarkerRow, ProcessRow, SyscallRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::limits;
use crate::patterns::{Input, Item, Job, Judgement, Mark, UNIDENTIFIED, judge};
use crate::query::Query;
use crate::slow::has_usual_length;

/// Maximum number of calls that are examined: the first of the window.
const ITEMS_MAX: usize = 300_000;
/// A program that is started this often may be a periodic job.
const JOB_STARTS_MIN: usize = 3;
/// Maximum number of peers that are distinguished: of more, none has enough calls for a comparison.
const OBJECTS_MAX: usize = 1000;
/// Maximum number of marks that are kept: in a storm of program starts, no single one matters.
const MARKS_MAX: usize = 10_000;

/// Classifies the calls of these names (or classes), or if there are none, all calls that do not
/// wait for work. `None` without any calls.
pub(crate) fn pattern(
    tables: &dyn Tables,
    query: &Query,
    calls: &[String],
) -> Result<Option<Judgement>, AnalysisError> {
    let window = query.window;
    let mut read = Calls::read(tables, window, calls)?;
    if read.items.is_empty() {
        return Ok(None);
    }
    let (resources, waits) = limits::read(tables, window)?;
    limits::put_waits(&mut read.items, &read.utids, &waits);
    let (marks, jobs) = marks(tables, window)?;
    let info = tables.info();
    let span = window.map_or((info.begin_ns, info.end_ns), |window| {
        (window.begin.max(info.begin_ns), window.end.min(info.end_ns))
    });
    let judgement = judge(&Input {
        items: &read.items,
        what: "call",
        window: Some(span),
        objective: query.min,
        clock: query.clock.as_ref(),
        keys: &read.keys,
        objects: &read.objects,
        workers: &read.workers,
        resources: &resources,
        marks: &marks,
        jobs: &jobs,
        ..Input::default()
    });
    Ok(Some(judgement))
}

#[derive(Debug, Default)]
struct Calls {
    items: Vec<Item>,
    /// Thread of each item.
    utids: Vec<i32>,
    keys: Vec<String>,
    /// Peers of connections; files and disks are compared by other, better tests.
    objects: Vec<String>,
    workers: Vec<String>,
}

impl Calls {
    fn object(&mut self, peers: &mut FxHashMap<String, u32>, peer: &str) -> u32 {
        if let Some(number) = peers.get(peer) {
            return *number;
        }
        if self.objects.len() >= OBJECTS_MAX {
            return UNIDENTIFIED;
        }
        let number = self.objects.len() as u32;
        peers.insert(peer.to_owned(), number);
        self.objects.push(peer.to_owned());
        number
    }

    fn key(&mut self, numbers: &mut FxHashMap<String, u32>, key: String) -> u32 {
        let next = self.keys.len() as u32;
        *numbers.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        })
    }

    fn worker(&mut self, threads: &mut FxHashMap<i64, u32>, utid: i64, tid: i64) -> u32 {
        let next = self.workers.len() as u32;
        *threads.entry(utid).or_insert_with(|| {
            self.workers.push(format!("thread {tid}"));
            next
        })
    }

    fn read(
        tables: &dyn Tables,
        window: Option<Window>,
        calls: &[String],
    ) -> Result<Self, AnalysisError> {
        let mut found = Self::default();
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut threads: FxHashMap<i64, u32> = FxHashMap::default();
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ts, dur, utid, tid, errno] =
            ["ts", "dur", "utid", "tid", "errno"].map(|name| projection.need(name));
        let [name, op, comm, class, path] =
            ["name", "op", "comm", "fd_class", "path"].map(|name| projection.need(name));
        let uncertain = Uncertain::new(tables, SyscallRow::TABLE, &mut projection)?;
        let mut peers: FxHashMap<String, u32> = FxHashMap::default();
        in_order(tables, &projection.scan(window), |batch| {
            let (ts, dur, utid) = (ts.ints(batch)?, dur.ints(batch)?, utid.ints(batch)?);
            let (tid, errno) = (tid.ints(batch)?, errno.ints(batch)?);
            let (name, op) = (name.texts(batch)?, op.texts(batch)?);
            let (comm, class, path) = (comm.texts(batch)?, class.texts(batch)?, path.texts(batch)?);
            let uncertain = uncertain.of(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let (Some(dur), Some(call)) = (dur.get(row), name.get(row)) else {
                    continue;
                };
                if uncertain.has(row) {
                    continue;
                }
                let begin = ts.at(row);
                let is_named =
                    |wanted: &String| wanted == call || Some(wanted.as_str()) == op.get(row);
                let is_wanted = if calls.is_empty() {
                    has_usual_length(call, class.get(row), path.get(row))
                } else {
                    calls.iter().any(is_named)
                };
                if !is_wanted || window.is_some_and(|window| !window.contains(begin)) {
                    continue;
                }
                let key = format!("{call} by {}", comm.get(row).unwrap_or("?"));
                let key = found.key(&mut numbers, key);
                let worker = utid.get(row).map_or(UNIDENTIFIED, |utid| {
                    found.worker(&mut threads, utid, tid.or_zero(row))
                });
                let peer = path
                    .get(row)
                    .filter(|_| matches!(class.get(row), Some("inet" | "inet6")));
                let object = peer.map_or(UNIDENTIFIED, |peer| found.object(&mut peers, peer));
                found.utids.push(utid.or_zero(row) as i32);
                found.items.push(Item {
                    ts: begin,
                    dur,
                    key,
                    object,
                    worker,
                    failed: errno.get(row).is_some(),
                    // Those that fail are never part of a baseline.
                    result: 0,
                    wait_ns_max: None,
                });
                if found.items.len() >= ITEMS_MAX {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

/// Markers and program starts; programs that were started often are jobs.
pub(crate) fn marks(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<(Vec<Mark>, Vec<Job>), AnalysisError> {
    let mut marks = Vec::new();
    let mut starts: BTreeMap<String, Vec<Ns>> = BTreeMap::new();
    let is_inside = |ts: Ns| window.is_none_or(|window| window.contains(ts));
    let mut projection = Projection::new(MarkerRow::TABLE);
    let (ts, text) = (projection.need("ts"), projection.need("text"));
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, text) = (ts.ints(batch)?, text.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if is_inside(ts.at(row)) && marks.len() < MARKS_MAX {
                let name = format!("marker `{}`", text.get(row).unwrap_or(""));
                marks.push(Mark {
                    ts: ts.at(row),
                    name,
                });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut projection = Projection::new(ProcessRow::TABLE);
    let (ts, comm) = (projection.need("ts_start"), projection.need("comm"));
    in_order(tables, &projection.scan(None), |batch| {
        let (ts, comm) = (ts.ints(batch)?, comm.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let (Some(ts), Some(comm)) = (ts.get(row), comm.get(row)) else {
                continue;
            };
            if is_inside(ts) {
                starts.entry(comm.to_owned()).or_default().push(ts);
                if marks.len() < MARKS_MAX {
                    let name = format!("start of {comm}");
                    marks.push(Mark { ts, name });
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    marks.index_sort_by(|a, b| (a.ts, &a.name).cmp(&(b.ts, &b.name)));
    let often = starts
        .into_iter()
        .filter(|(_, starts)| starts.len() >= JOB_STARTS_MIN);
    let jobs = often.map(|(name, mut starts)| {
        starts.sort_unstable();
        Job { name, starts }
    });
    Ok((marks, jobs.collect()))
}
