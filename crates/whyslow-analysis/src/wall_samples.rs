//! Wall-clock samples of threads by the recorder, during gaps in the samples of a profiler.
//!
//! A profiler that sends signals only detects that none was handled. The recorder samples from
//! outside: it sees the thread's state and its place in the kernel, which proves or refutes an
//! assumption.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::tables::StackSampleRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// Samples are conclusive if they cover this share of an interval.
const COVERED: f64 = 0.5;

/// Kernel function and system call, as indexes into [`WallSamples::words`].
type Place = (Option<u32>, Option<u32>);

#[derive(Debug)]
struct WallSample {
    begin: Ns,
    end: Ns,
    /// Where it waited uninterruptibly; `None` if it did not.
    waits: Option<Place>,
}

/// The samples of some threads.
#[derive(Debug, Default)]
pub struct WallSamples {
    of: FxHashMap<i64, Vec<WallSample>>,
    words: Vec<String>,
}

/// What samples show about an interval of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// It was in uninterruptible sleep for most of the interval, longest here.
    Uninterruptible {
        /// Value of `stack_sample.function`: where in the kernel it waited.
        function: Option<String>,
        /// System call that it was in; `None` outside of system calls.
        syscall: Option<String>,
    },
    /// It was not.
    Otherwise,
}

impl WallSamples {
    /// The recorder's wall-clock samples of the threads `wanted` (`utid`) that touch the window.
    pub fn read(
        tables: &dyn Tables,
        window: Window,
        wanted: &FxHashSet<i64>,
    ) -> Result<Self, AnalysisError> {
        let mut samples = Self::default();
        let is_there = tables.info().tables.get(StackSampleRow::TABLE.name);
        if wanted.is_empty() || is_there.is_none_or(|table| table.rows == 0) {
            return Ok(samples);
        }
        let mut projection = Projection::new(StackSampleRow::TABLE);
        let [ts, ts_end, utid] = ["ts", "ts_end", "utid"].map(|name| projection.need(name));
        let [sampler, state, function, syscall] =
            ["sampler", "state", "function", "syscall"].map(|name| projection.need(name));
        let mut known: FxHashMap<String, u32> = FxHashMap::default();
        in_order(tables, &projection.scan(Some(window)), |batch| {
            let sampler = sampler.texts(batch)?;
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let (state, function) = (state.texts(batch)?, function.texts(batch)?);
            let syscall = syscall.texts(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let thread = utid.get(row).filter(|utid| wanted.contains(utid));
                let is_look = sampler.get(row) == Some("recorder");
                let (Some(thread), Some(end), true) = (thread, ts_end.get(row), is_look) else {
                    continue;
                };
                let mut number = |word: Option<&str>| {
                    let word = word?;
                    if let Some(at) = known.get(word) {
                        return Some(*at);
                    }
                    samples.words.push(word.to_owned());
                    let at = samples.words.len() as u32 - 1;
                    known.insert(word.to_owned(), at);
                    Some(at)
                };
                let is_wait = state.get(row) == Some("uninterruptible");
                let waits = is_wait.then(|| (number(function.get(row)), number(syscall.get(row))));
                let (begin, sample) = (ts.at(row), samples.of.entry(thread).or_default());
                sample.push(WallSample { begin, end, waits });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(samples)
    }

    /// `None` without samples, or with too few.
    pub fn of(&self, utid: i64, (begin, end): (Ns, Ns)) -> Option<Observed> {
        let (mut seen, mut waited): (Ns, Ns) = (0, 0);
        let mut places: Vec<(Place, Ns)> = Vec::new();
        for sample in self.of.get(&utid)? {
            let shared = sample.end.min(end) - sample.begin.max(begin);
            if shared <= 0 {
                continue;
            }
            seen += shared;
            let Some(place) = sample.waits else { continue };
            waited += shared;
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, sum)) => *sum += shared,
                None => places.push((place, shared)),
            }
        }
        if (seen as f64) < COVERED * (end - begin) as f64 {
            return None;
        }
        // The first of equally long ones.
        let longest = places.iter().rev().max_by_key(|(_, sum)| *sum);
        let Some(((function, syscall), _)) = longest.filter(|_| waited * 2 >= seen) else {
            return Some(Observed::Otherwise);
        };
        let word = |at: &Option<u32>| at.map(|at| self.words[at as usize].clone());
        Some(Observed::Uninterruptible {
            function: word(function),
            syscall: word(syscall),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(begin: Ns, end: Ns, place: Option<u32>) -> WallSample {
        let waits = place.map(|function| (Some(function), None));
        WallSample { begin, end, waits }
    }

    #[test]
    fn a_time_is_proven_by_looks_that_cover_it() {
        let samples = WallSamples {
            of: FxHashMap::from_iter([(
                7,
                vec![
                    sample(0, 10, None),
                    sample(10, 30, Some(0)),
                    sample(30, 70, Some(1)),
                    sample(70, 80, None),
                ],
            )]),
            words: vec!["down_read".into(), "folio_wait_bit".into()],
        };
        let in_wait = |function: &str| {
            Some(Observed::Uninterruptible {
                function: Some(function.into()),
                syscall: None,
            })
        };
        assert_eq!(samples.of(7, (10, 70)), in_wait("folio_wait_bit"));
        assert_eq!(samples.of(7, (10, 40)), in_wait("down_read"));
        // It ran, or slept.
        assert_eq!(samples.of(7, (0, 12)), Some(Observed::Otherwise));
        // Most of the time has no samples, or the thread has none at all.
        assert_eq!(samples.of(7, (60, 200)), None);
        assert_eq!(samples.of(8, (10, 70)), None);
    }
}
