//! What the recorder saw of threads, looking at them from outside, while a profiler got no sample of them.
//!
//! A profiler that sends signals can only tell that none arrived. Who looks from outside sees the state of the
//! thread and where it is in the kernel, so that a guess becomes proof, or is refuted.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::tables::StackSampleRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// Looks say something of a time that they cover this much of.
const COVERED: f64 = 0.5;

/// Function of the kernel and system call, as numbers of [`Looks::words`].
type Place = (Option<u32>, Option<u32>);

#[derive(Debug)]
struct Look {
    begin: Ns,
    end: Ns,
    /// Where it waited uninterruptibly; none if it did not.
    waits: Option<Place>,
}

/// Of some threads.
#[derive(Debug, Default)]
pub struct Looks {
    of: FxHashMap<i64, Vec<Look>>,
    words: Vec<String>,
}

/// What looks say of a time of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// It waited uninterruptibly for most of it, longest here.
    Uninterruptible {
        /// Value of `stack_sample.function`: where in the kernel it waited.
        function: Option<String>,
        /// System call that it was in; `None` outside of calls.
        syscall: Option<String>,
    },
    /// It did not.
    Otherwise,
}

impl Looks {
    /// The recorder's wall-clock samples of the threads `wanted` (`utid`) that touch the window.
    pub fn read(
        tables: &dyn Tables,
        window: Window,
        wanted: &FxHashSet<i64>,
    ) -> Result<Self, AnalysisError> {
        let mut looks = Self::default();
        let is_there = tables.info().tables.get(StackSampleRow::TABLE.name);
        if wanted.is_empty() || is_there.is_none_or(|table| table.rows == 0) {
            return Ok(looks);
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
                    looks.words.push(word.to_owned());
                    let at = looks.words.len() as u32 - 1;
                    known.insert(word.to_owned(), at);
                    Some(at)
                };
                let is_wait = state.get(row) == Some("uninterruptible");
                let waits = is_wait.then(|| (number(function.get(row)), number(syscall.get(row))));
                let (begin, look) = (ts.at(row), looks.of.entry(thread).or_default());
                look.push(Look { begin, end, waits });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(looks)
    }

    /// None if nobody looked, or too seldom.
    pub fn of(&self, utid: i64, (begin, end): (Ns, Ns)) -> Option<Shown> {
        let (mut seen, mut waited): (Ns, Ns) = (0, 0);
        let mut places: Vec<(Place, Ns)> = Vec::new();
        for look in self.of.get(&utid)? {
            let shared = look.end.min(end) - look.begin.max(begin);
            if shared <= 0 {
                continue;
            }
            seen += shared;
            let Some(place) = look.waits else { continue };
            waited += shared;
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, sum)) => *sum += shared,
                None => places.push((place, shared)),
            }
        }
        if (seen as f64) < COVERED * (end - begin) as f64 {
            return None;
        }
        // The first of those that are as long.
        let longest = places.iter().rev().max_by_key(|(_, sum)| *sum);
        let Some(((function, syscall), _)) = longest.filter(|_| waited * 2 >= seen) else {
            return Some(Shown::Otherwise);
        };
        let word = |at: &Option<u32>| at.map(|at| self.words[at as usize].clone());
        Some(Shown::Uninterruptible {
            function: word(function),
            syscall: word(syscall),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(begin: Ns, end: Ns, place: Option<u32>) -> Look {
        let waits = place.map(|function| (Some(function), None));
        Look { begin, end, waits }
    }

    #[test]
    fn a_time_is_proven_by_looks_that_cover_it() {
        let looks = Looks {
            of: FxHashMap::from_iter([(
                7,
                vec![
                    look(0, 10, None),
                    look(10, 30, Some(0)),
                    look(30, 70, Some(1)),
                    look(70, 80, None),
                ],
            )]),
            words: vec!["down_read".into(), "folio_wait_bit".into()],
        };
        let in_wait = |function: &str| {
            Some(Shown::Uninterruptible {
                function: Some(function.into()),
                syscall: None,
            })
        };
        assert_eq!(looks.of(7, (10, 70)), in_wait("folio_wait_bit"));
        assert_eq!(looks.of(7, (10, 40)), in_wait("down_read"));
        // It ran, or slept.
        assert_eq!(looks.of(7, (0, 12)), Some(Shown::Otherwise));
        // Nobody looked for most of it, or at this thread at all.
        assert_eq!(looks.of(7, (60, 200)), None);
        assert_eq!(looks.of(8, (10, 70)), None);
    }
}
