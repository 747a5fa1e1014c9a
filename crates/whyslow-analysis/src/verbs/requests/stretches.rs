//! Which thread worked on which request at what time: rows of `request_thread`.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::WORKERS;
use crate::pass::Pass;
use crate::query::Filter;

/// An interval in which a thread had a request.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) request: i64,
    pub(super) utid: i64,
    pub(super) ts: Ns,
    /// The end of the recording if it has no end.
    pub(super) ts_end: Ns,
    pub(super) received_by: Option<Arc<str>>,
    pub(super) from_utid: Option<i64>,
    pub(super) is_shared: bool,
    pub(super) tid: Option<i64>,
    pub(super) comm: Option<Arc<str>>,
}

/// Those of some requests, or of all that the query selects, in order of start.
pub(super) fn read(
    context: &Context<'_>,
    of: Option<&FxHashSet<i64>>,
) -> Result<Vec<Stretch>, AnalysisError> {
    let mut pass: Pass = match of {
        Some(_) => context.pass_in(&WORKERS, &[], &Filter::default(), None)?,
        None => context.pass(&WORKERS, &[])?,
    };
    if let Some(of) = of {
        pass.selector
            .only_among("request", of.clone(), &mut pass.projection);
    }
    let names = ["request", "utid", "ts", "ts_end", "from_utid", "tid"];
    let [request, utid, ts, ts_end, from_utid, tid] = names.map(|name| pass.projection.need(name));
    let [received_by, comm] = ["received_by", "comm"].map(|name| pass.projection.need(name));
    let is_shared = pass.projection.need("is_shared");
    let whole_end = context.recording_end();
    let mut words = Words::default();
    let mut verdicts = pass.selector.verdicts();
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            let [request, utid, ts] = [request.ints(batch)?, utid.ints(batch)?, ts.ints(batch)?];
            let [ts_end, from_utid] = [ts_end.ints(batch)?, from_utid.ints(batch)?];
            let (tid, received_by) = (tid.ints(batch)?, received_by.texts(batch)?);
            let (comm, is_shared) = (comm.texts(batch)?, is_shared.bools(batch)?);
            found.extend(rows.iter().copied().map(|row| Stretch {
                request: request.at(row),
                utid: utid.at(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row).unwrap_or(whole_end).max(ts.at(row)),
                received_by: received_by.get(row).map(|word| words.of(word)),
                from_utid: from_utid.get(row),
                is_shared: is_shared.value(row as usize),
                tid: tid.get(row),
                comm: comm.get(row).map(|word| words.of(word)),
            }));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// Interned strings, because many stretches share them.
#[derive(Default)]
struct Words(FxHashSet<Arc<str>>);

impl Words {
    fn of(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return Arc::clone(known);
        }
        let word: Arc<str> = word.into();
        self.0.insert(Arc::clone(&word));
        word
    }
}

/// Stretches by thread, to find the one at a given time.
pub(super) struct ByThread<'s> {
    stretches: &'s [Stretch],
    /// Indexes of each thread's stretches, in order of start, each with the latest end so far.
    threads: FxHashMap<i64, Vec<(usize, Ns)>>,
}

impl<'s> ByThread<'s> {
    pub(super) fn new(stretches: &'s [Stretch]) -> Self {
        let mut threads: FxHashMap<i64, Vec<(usize, Ns)>> = FxHashMap::default();
        for (place, stretch) in stretches.iter().enumerate() {
            let of_thread = threads.entry(stretch.utid).or_default();
            let latest = of_thread.last().map_or(Ns::MIN, |(_, latest)| *latest);
            of_thread.push((place, latest.max(stretch.ts_end)));
        }
        Self { stretches, threads }
    }

    /// The range from the first start to the last end.
    pub(super) fn hull(&self) -> Option<Window> {
        let begin = self.stretches.iter().map(|one| one.ts).min()?;
        let end = self.stretches.iter().map(|one| one.ts_end).max()?;
        Some(Window::new(begin, end.max(begin + 1)))
    }

    /// Stretches of a thread that overlap a time, latest start first.
    pub(super) fn overlapping(
        &self,
        utid: i64,
        (ts, ts_end): (Ns, Ns),
    ) -> impl Iterator<Item = usize> + '_ {
        let of_thread = self.threads.get(&utid).map_or(&[][..], Vec::as_slice);
        let begun = of_thread.partition_point(|(place, _)| self.stretches[*place].ts < ts_end);
        of_thread[..begun]
            .iter()
            .rev()
            .take_while(move |(_, latest)| *latest > ts)
            .map(|(place, _)| *place)
            .filter(move |place| self.stretches[*place].ts_end > ts)
    }

    /// The stretch of a thread at a time: of several, the one with the latest start.
    pub(super) fn of(&self, utid: i64, ts: Ns) -> Option<usize> {
        self.overlapping(utid, (ts, ts + 1)).next()
    }
}
