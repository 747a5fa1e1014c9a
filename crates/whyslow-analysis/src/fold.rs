//! Reads a table: in which order, on how many threads, all rows or single ones.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use whyslow_model::sort::IndexSort;
use whyslow_store::{Part, Scan, StoreError, Tables, Visit};

use crate::AnalysisError;

/// Position of a row in a scan: the piece of the table, and the number of rows before it. Another
/// scan of the same table and window finds the row there, whatever its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Spot {
    part: u32,
    number: u64,
}

impl Spot {
    /// Position of a row of the batch that begins here.
    #[inline]
    pub(crate) fn row(self, row: u32) -> Self {
        Self {
            number: self.number + u64::from(row),
            ..self
        }
    }
}

/// Below this, a second thread costs more than it saves.
const ROWS_PER_THREAD: u64 = 20_000;
/// A table with this many rows is decoded ahead of an in-order reader, by this many batches.
const ROWS_AHEAD: u64 = 200_000;
const BATCHES_AHEAD: usize = 4;
/// Single rows are expensive because most of the decoded data is discarded.
const ROWS_PER_SPOT: u64 = 500;

/// Passes every batch of the table and the position of its first row to `each`, on all threads.
/// Each thread fills its own `init()`; the results are merged at the end. The merge must not depend
/// on the order.
pub(crate) fn fold<A: Send>(
    tables: &dyn Tables,
    scan: &Scan,
    init: impl Fn() -> A + Sync,
    each: impl Fn(&mut A, &RecordBatch, Spot) -> Result<(), AnalysisError> + Sync,
    merge: impl FnMut(&mut A, A),
) -> Result<A, AnalysisError> {
    let parts = tables.parts(scan)?;
    let mut jobs: Vec<Job<&dyn Part>> = parts
        .iter()
        .enumerate()
        .map(|(number, part)| Job {
            weight: part.rows(),
            number,
            what: part.as_ref(),
        })
        .collect();
    let work = |state: &mut A, job: &Job<&dyn Part>| {
        let mut spot = job.begin();
        visit(&mut |visit| job.what.read(visit), &mut |batch| {
            each(state, batch, spot)?;
            spot.number += batch.num_rows() as u64;
            Ok(())
        })
    };
    on_threads(&mut jobs, init, work, merge)
}

/// Passes the rows at these ascending positions to `each`: a batch and the positions of its rows.
pub(crate) fn fold_spots<A: Send>(
    tables: &dyn Tables,
    scan: &Scan,
    spots: &[Spot],
    init: impl Fn() -> A + Sync,
    each: impl Fn(&mut A, &RecordBatch, &[Spot]) -> Result<(), AnalysisError> + Sync,
    merge: impl FnMut(&mut A, A),
) -> Result<A, AnalysisError> {
    let parts = tables.parts(scan)?;
    let mut jobs: Vec<Job<(&dyn Part, &[Spot])>> = spots
        .chunk_by(|a, b| a.part == b.part)
        .filter_map(|spots| {
            let number = spots.first()?.part as usize;
            let part = parts.get(number)?;
            let read = spots.len() as u64 * ROWS_PER_SPOT;
            Some(Job {
                weight: read.min(part.rows()),
                number,
                what: (part.as_ref(), spots),
            })
        })
        .collect();
    let work = |state: &mut A, job: &Job<(&dyn Part, &[Spot])>| {
        let (part, mut spots) = job.what;
        let numbers: Vec<u64> = spots.iter().map(|spot| spot.number).collect();
        visit(&mut |visit| part.read_rows(&numbers, visit), &mut |batch| {
            let (these, rest) = spots.split_at(batch.num_rows().min(spots.len()));
            spots = rest;
            each(state, batch, these)
        })
    };
    on_threads(&mut jobs, init, work, merge)
}

/// Passes every batch to `each` in (`ts`, id) order until it breaks. For a large table, the next
/// batches are decoded concurrently.
pub fn in_order(
    tables: &dyn Tables,
    scan: &Scan,
    mut each: impl FnMut(&RecordBatch) -> Result<ControlFlow<()>, AnalysisError>,
) -> Result<(), AnalysisError> {
    let table = tables.info().tables.get(scan.table.name);
    if table.is_some_and(|table| table.rows >= ROWS_AHEAD) {
        return in_order_ahead(tables, scan, &mut each);
    }
    in_order_here(tables, scan, &mut each)
}

/// The consumer of a batch. Called through a pointer, so that there is one reader for all
/// consumers; a batch has thousands of rows.
type Each<'e> = dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, AnalysisError> + 'e;

fn in_order_here(
    tables: &dyn Tables,
    scan: &Scan,
    each: &mut Each<'_>,
) -> Result<(), AnalysisError> {
    let mut failure = None;
    tables.scan(scan, &mut |batch| {
        Ok(each(batch).unwrap_or_else(|error| {
            failure = Some(error);
            ControlFlow::Break(())
        }))
    })?;
    failure.map_or(Ok(()), Err)
}

fn in_order_ahead(
    tables: &dyn Tables,
    scan: &Scan,
    each: &mut Each<'_>,
) -> Result<(), AnalysisError> {
    let (sender, batches) = sync_channel::<RecordBatch>(BATCHES_AHEAD);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            tables.scan(scan, &mut |batch| {
                // Copying a batch only increments reference counts.
                let is_wanted = sender.send(batch.clone()).is_ok();
                Ok(if is_wanted {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })
        });
        let mut seen = Ok(());
        // The loop drops the receiver, which stops the reader.
        for batch in batches {
            match each(&batch) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => {
                    seen = Err(error);
                    break;
                }
            }
        }
        match reader.join() {
            Ok(read) => read?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        seen
    })
}

/// Batches per piece of a table that is not read in the pieces in which it was written.
const BATCHES_PER_PIECE: usize = 64;

/// Passes the batches of each piece of a table in order to a state of its own, on all threads, and
/// the states to `next` in the order of the pieces.
pub(crate) fn fold_in_turn<A: Send>(
    tables: &dyn Tables,
    scan: &Scan,
    init: impl Fn() -> A + Sync,
    each: impl Fn(&mut A, &RecordBatch) -> Result<(), AnalysisError> + Sync,
    mut next: impl FnMut(A) + Send,
) -> Result<(), AnalysisError> {
    let table = tables.info().tables.get(scan.table.name);
    if table.is_some_and(|table| !table.long_files.is_empty()) {
        // Late rows have pieces of their own.
        let (mut piece, mut batches) = (init(), 0);
        in_order(tables, scan, |batch| {
            if batches == BATCHES_PER_PIECE {
                next(std::mem::replace(&mut piece, init()));
                batches = 0;
            }
            batches += 1;
            each(&mut piece, batch)?;
            Ok(ControlFlow::Continue(()))
        })?;
        next(piece);
        return Ok(());
    }
    let parts = tables.parts(scan)?;
    let rows: u64 = parts.iter().map(|part| part.rows()).sum();
    let (taken, turns) = (AtomicUsize::new(0), Mutex::new(Turns::new(next)));
    let take = || {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        Some((number, parts.get(number)?))
    };
    let run = || -> Result<(), AnalysisError> {
        while let Some((number, part)) = take() {
            let mut piece = init();
            visit(&mut |visit| part.read(visit), &mut |batch| {
                each(&mut piece, batch)
            })?;
            let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.take(number, piece);
        }
        Ok(())
    };
    collect_from(threads_for(parts.len(), rows), run)
        .into_iter()
        .collect()
}

/// Passes results on in order, whatever order they arrive in.
struct Turns<A, F> {
    next: F,
    number: usize,
    waiting: BTreeMap<usize, A>,
}

impl<A, F: FnMut(A)> Turns<A, F> {
    fn new(next: F) -> Self {
        Self {
            next,
            number: 0,
            waiting: BTreeMap::new(),
        }
    }

    fn take(&mut self, number: usize, piece: A) {
        self.waiting.insert(number, piece);
        while let Some(piece) = self.waiting.remove(&self.number) {
            (self.next)(piece);
            self.number += 1;
        }
    }
}

/// Passes every batch in (`ts`, id) order to each of several workers, which proceed at their own
/// speed and divide the work on a batch among themselves.
pub(crate) fn in_order_by_all<W: Send>(
    tables: &dyn Tables,
    scan: &Scan,
    mut workers: Vec<W>,
    each: impl Fn(&mut W, &RecordBatch) -> Result<(), AnalysisError> + Sync,
) -> Result<Vec<W>, AnalysisError> {
    let table = tables.info().tables.get(scan.table.name);
    if workers.len() < 2 || table.is_none_or(|table| table.rows < ROWS_AHEAD) {
        in_order(tables, scan, |batch| {
            for worker in &mut workers {
                each(worker, batch)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        return Ok(workers);
    }
    let each = &each;
    std::thread::scope(|scope| {
        let (senders, working): (Vec<_>, Vec<_>) = workers
            .into_iter()
            .map(|mut worker| {
                let (sender, batches) = sync_channel::<RecordBatch>(BATCHES_AHEAD);
                // A worker that fails drops its receiver, which stops the reading.
                let work = move || {
                    for batch in batches {
                        each(&mut worker, &batch)?;
                    }
                    Ok(worker)
                };
                (sender, scope.spawn(work))
            })
            .unzip();
        let read = tables.scan(scan, &mut |batch| {
            let are_there = senders
                .iter()
                .all(|sender| sender.send(batch.clone()).is_ok());
            Ok(if are_there {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        });
        drop(senders);
        let done = working.into_iter().map(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let done = done.collect();
        read?;
        done
    })
}

struct Job<T> {
    weight: u64,
    number: usize,
    what: T,
}

impl<T> Job<T> {
    fn begin(&self) -> Spot {
        Spot {
            part: self.number as u32,
            number: 0,
        }
    }
}

/// Passes the batches of `read` to `each`; an error of `each` stops the reading.
fn visit(
    read: &mut dyn FnMut(&mut Visit<'_>) -> Result<(), StoreError>,
    each: &mut dyn FnMut(&RecordBatch) -> Result<(), AnalysisError>,
) -> Result<(), AnalysisError> {
    let mut failure = None;
    read(&mut |batch| {
        Ok(match each(batch) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })
    })?;
    failure.map_or(Ok(()), Err)
}

fn on_threads<A: Send, T: Sync + Send>(
    jobs: &mut [Job<T>],
    init: impl Fn() -> A + Sync,
    work: impl Fn(&mut A, &Job<T>) -> Result<(), AnalysisError> + Sync,
    mut merge: impl FnMut(&mut A, A),
) -> Result<A, AnalysisError> {
    // Largest first, so that the threads finish together.
    jobs.index_sort_by_key(|job| std::cmp::Reverse(job.weight));
    let weight: u64 = jobs.iter().map(|job| job.weight).sum();
    let jobs = &*jobs;
    let next = AtomicUsize::new(0);
    let run = || -> Result<A, AnalysisError> {
        let mut state = init();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(&mut state, job)?;
        }
        Ok(state)
    };
    let states = collect_from(threads_for(jobs.len(), weight), run);
    let mut merged: Option<A> = None;
    for state in states {
        let state = state?;
        match &mut merged {
            None => merged = Some(state),
            Some(merged) => merge(merged, state),
        }
    }
    Ok(merged.unwrap_or_else(init))
}

/// Number of threads for this many jobs and rows.
fn threads_for(jobs: usize, rows: u64) -> usize {
    let threads = jobs.min(1 + (rows / ROWS_PER_THREAD) as usize);
    threads.clamp(1, rayon::current_num_threads().max(1))
}

/// The results of `run` on each of several threads.
fn collect_from<A: Send>(threads: usize, run: impl Fn() -> A + Sync) -> Vec<A> {
    let done = Mutex::new(Vec::with_capacity(threads));
    on_so_many(threads, &|| {
        let result = run();
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(result);
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs it on several threads, or on the current one if one suffices.
fn on_so_many(threads: usize, run: &(dyn Fn() + Sync)) {
    if threads == 1 {
        return run();
    }
    rayon::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|_| run());
        }
    });
}
