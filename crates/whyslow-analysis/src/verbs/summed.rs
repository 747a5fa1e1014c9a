//! Samples aggregated by thread, state and stack, as input for flame graphs. Each row costs one
//! access per column and one to its sum, on all threads; visiting millions of rows one by one would
//! take seconds.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, fold};
use crate::kinds::STACKS;
use crate::scan::{ColumnRef, PerWord, Texts};

/// Samples of one thread in one state with one stack.
#[derive(Debug, Clone)]
pub struct StackSum {
    /// Name of the thread.
    pub comm: Option<String>,
    /// Kernel process id.
    pub pid: Option<i64>,
    /// Kernel thread id.
    pub tid: Option<i64>,
    /// Value of `stack_sample.state`.
    pub state: Option<String>,
    /// Id in the table `callsite`; `None` if no stack was taken.
    pub callsite: Option<i64>,
    /// Sum of the results of [`Counts::time`], ns.
    pub time: Ns,
    /// Number of rows.
    pub count: i64,
    /// Start of the first one.
    pub first: Ns,
    /// Latest end.
    pub last: Ns,
}

/// Which samples count, and with how much time.
pub trait Counts: Sync {
    /// Result for the kind, state and sampler of a sample; `None` if it does not count.
    type Rule: Copy + Send;
    /// Called once for each combination of values of the columns `kind`, `state` and `sampler`.
    fn rule(&self, kind: &str, state: Option<&str>, sampler: Option<&str>) -> Option<Self::Rule>;
    /// Time of a sample of this thread with this start, duration and number of samples; `None` if
    /// it does not count.
    fn time(&self, rule: Self::Rule, tid: Option<i64>, sample: (Ns, Ns, Option<i64>))
    -> Option<Ns>;
}

/// Not a valid number or word index.
const NONE: i64 = i64::MIN;
const NO_WORD: u32 = u32::MAX;
/// A word that has not been looked up.
const UNSET: u32 = u32::MAX - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    comm: u32,
    state: u32,
    tid: i64,
    pid: i64,
    callsite: i64,
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    time: Ns,
    count: i64,
    first: (Ns, Spot),
    last: Ns,
}

impl Sum {
    #[inline]
    fn add(&mut self, other: &Sum) {
        self.time = self.time.saturating_add(other.time);
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// Sums by key. Most rows have one of few keys, which are found by index, without a hash table
/// lookup.
struct Sums {
    all: Vec<(Key, Sum)>,
    known: FxHashMap<Key, u32>,
    /// Indexes in `all` of recently used keys.
    recent: Vec<u32>,
}

/// Size of the cache of recent keys.
const RECENT: usize = 1 << 12;

impl Sums {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            known: FxHashMap::default(),
            recent: vec![0; RECENT],
        }
    }

    #[inline]
    fn add(&mut self, key: Key, sum: &Sum) {
        let words = u64::from(key.comm) ^ u64::from(key.state) << 8;
        let numbers = key.tid.cast_unsigned() ^ key.callsite.cast_unsigned() << 5;
        let mixed = (words ^ numbers).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let recent = self.recent[mixed as usize % RECENT];
        match self.all.get_mut(recent as usize) {
            Some((known, before)) if *known == key => before.add(sum),
            _ => self.recent[mixed as usize % RECENT] = self.find(key, sum),
        }
    }

    #[cold]
    fn find(&mut self, key: Key, sum: &Sum) -> u32 {
        let place = *self.known.entry(key).or_insert(self.all.len() as u32);
        match self.all.get_mut(place as usize) {
            Some((_, before)) => before.add(sum),
            None => self.all.push((key, *sum)),
        }
        place
    }
}

/// Words with numbers of their own, independent of dictionaries.
#[derive(Default)]
struct Words {
    all: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Words {
    fn place(&mut self, word: &str) -> u32 {
        if let Some(known) = self.known.get(word) {
            return *known;
        }
        let place = self.all.len() as u32;
        self.all.push(word.to_owned());
        self.known.insert(word.to_owned(), place);
        place
    }

    fn get(&self, place: u32) -> Option<&String> {
        self.all.get(place as usize)
    }
}

/// A text column, as numbers of words.
#[derive(Default)]
struct Column {
    words: Words,
    of: PerWord<u32>,
}

impl Column {
    fn numbers<'a>(&'a mut self, texts: &'a Texts<'_>) -> impl FnMut(u32) -> u32 + 'a {
        let known = self.of.of(texts, UNSET);
        let words = &mut self.words;
        move |row| {
            let Some(key) = texts.key(row) else {
                return NO_WORD;
            };
            let Some(place) = known.get_mut(key) else {
                return NO_WORD;
            };
            if *place == UNSET {
                *place = words.place(texts.words.value(key));
            }
            *place
        }
    }
}

struct Worker<V> {
    verdicts: V,
    rows: Vec<u32>,
    comms: Column,
    states: Column,
    sums: Sums,
}

/// The rule for kind, state and sampler, by their indexes in the dictionaries of a batch.
#[derive(Clone, Copy)]
struct Ruled<R> {
    words: [Option<usize>; 3],
    rule: Option<R>,
}

/// The columns to read.
struct Columns {
    ts: ColumnRef,
    dur: ColumnRef,
    tid: ColumnRef,
    pid: ColumnRef,
    callsite: ColumnRef,
    credits: ColumnRef,
    comm: ColumnRef,
    state: ColumnRef,
    kind: ColumnRef,
    sampler: ColumnRef,
}

/// Sums of the samples that pass the filter, in order of first occurrence.
pub(crate) fn stacks<C: Counts>(
    context: &Context<'_>,
    counts: &C,
) -> Result<Vec<StackSum>, AnalysisError> {
    let mut pass = context.pass_of(&STACKS, &[], &context.query.filter)?;
    let mut need = |name| pass.projection.need(name);
    let columns = Columns {
        ts: need("ts"),
        dur: need("dur"),
        tid: need("tid"),
        pid: need("pid"),
        callsite: need("callsite_id"),
        credits: need("credits"),
        comm: need("comm"),
        state: need("state"),
        kind: need("kind"),
        sampler: need("sampler"),
    };
    let init = || {
        vec![Worker {
            verdicts: pass.selector.verdicts(),
            rows: Vec::new(),
            comms: Column::default(),
            states: Column::default(),
            sums: Sums::new(),
        }]
    };
    let scan = pass.projection.scan(pass.selected);
    let each = |workers: &mut Vec<Worker<_>>, batch: &RecordBatch, first: Spot| {
        workers.iter_mut().try_for_each(|worker| {
            let rows = &mut worker.rows;
            pass.selector.select(&mut worker.verdicts, batch, rows)?;
            columns.add(worker, (batch, first), counts)
        })
    };
    let workers = fold(context.tables, &scan, init, each, |all, mut more| {
        all.append(&mut more);
    })?;
    Ok(merged(&workers))
}

impl Columns {
    fn add<V, C: Counts>(
        &self,
        worker: &mut Worker<V>,
        (batch, first): (&RecordBatch, Spot),
        counts: &C,
    ) -> Result<(), AnalysisError> {
        let (ts, dur) = (self.ts.ints(batch)?, self.dur.ints(batch)?);
        let (tid, pid) = (self.tid.ints(batch)?, self.pid.ints(batch)?);
        let (callsite, credits) = (self.callsite.ints(batch)?, self.credits.ints(batch)?);
        let [comm, state, kind] = [self.comm, self.state, self.kind].map(|of| of.texts(batch));
        let (comm, state, kind) = (comm?, state?, kind?);
        let sampler = self.sampler.texts(batch)?;
        let mut comms = worker.comms.numbers(&comm);
        let mut states = worker.states.numbers(&state);
        // These rarely change from row to row.
        let mut known: Option<Ruled<C::Rule>> = None;
        for row in worker.rows.iter().copied() {
            let words = [&kind, &state, &sampler].map(|of| of.key(row));
            let rule = match known {
                Some(ruled) if ruled.words == words => ruled.rule,
                _ => {
                    let kind = kind.get(row).unwrap_or_default();
                    counts.rule(kind, state.get(row), sampler.get(row))
                }
            };
            known = Some(Ruled { words, rule });
            let Some(rule) = rule else { continue };
            let (begin, length) = (ts.at(row), dur.or_zero(row));
            let tid = tid.get(row);
            let Some(time) = counts.time(rule, tid, (begin, length, credits.get(row))) else {
                continue;
            };
            let sum = Sum {
                time,
                count: 1,
                first: (begin, first.row(row)),
                last: begin.saturating_add(length),
            };
            let key = Key {
                comm: comms(row),
                state: states(row),
                tid: tid.unwrap_or(NONE),
                pid: pid.get(row).unwrap_or(NONE),
                callsite: callsite.get(row).unwrap_or(NONE),
            };
            worker.sums.add(key, &sum);
        }
        Ok(())
    }
}

/// Merges the sums of all threads.
fn merged<V>(workers: &[Worker<V>]) -> Vec<StackSum> {
    let (mut comms, mut states) = (Words::default(), Words::default());
    let mut sums = Sums::new();
    for worker in workers {
        for (key, sum) in &worker.sums.all {
            let place = |words: &mut Words, of: &Column, number| {
                let word = of.words.get(number);
                word.map_or(NO_WORD, |word| words.place(word))
            };
            let key = Key {
                comm: place(&mut comms, &worker.comms, key.comm),
                state: place(&mut states, &worker.states, key.state),
                ..*key
            };
            sums.add(key, sum);
        }
    }
    let mut sums = sums.all;
    // Each has a distinct first row.
    sums.sort_unstable_by_key(|(_, sum)| sum.first);
    let number = |number: i64| (number != NONE).then_some(number);
    let sums = sums.into_iter().map(|(key, sum)| StackSum {
        comm: comms.get(key.comm).cloned(),
        pid: number(key.pid),
        tid: number(key.tid),
        state: states.get(key.state).cloned(),
        callsite: number(key.callsite),
        time: sum.time,
        count: sum.count,
        first: sum.first.0,
        last: sum.last,
    });
    sums.collect()
}
