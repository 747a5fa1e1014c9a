//! Lanes whose intervals lie in two tables: both are read at once, and come in order of time.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::TilesError;
use crate::build::lanes::{LanesBuilder, Told};
use crate::build::rows::Work;

/// Batches of the other table that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// Shows rows of a table one after another.
type One<'f> = &'f mut dyn FnMut(Told);
/// Shows rows of a table a batch at a time, as long as they are wanted.
type Batches<'f> = &'f mut dyn FnMut(Vec<Told>) -> bool;

/// Adds the rows of both; what the first one tells of progress counts for the second, too.
pub(crate) fn both(
    work: &Work<'_>,
    lanes: &mut LanesBuilder<'_, '_>,
    first: impl FnOnce(&Work<'_>, One<'_>) -> Result<(), TilesError>,
    second: impl FnOnce(&Work<'_>, Batches<'_>) -> Result<(), TilesError> + Send,
) -> Result<(), TilesError> {
    let (sender, batches) = sync_channel::<Vec<Told>>(BATCHES_AHEAD);
    let (tables, cancel) = (work.tables, work.cancel);
    let mut rows = 0;
    std::thread::scope(|scope| {
        let beside = scope.spawn(move || {
            let work = Work::beside(tables, cancel);
            // Whoever has no use for more drops the other end.
            second(&work, &mut |told| sender.send(told).is_ok())
        });
        let mut others = InTurn::new(batches);
        let done = first(work, &mut |told| {
            rows += others.until(told.ts, lanes);
            lanes.add(&told);
        });
        if done.is_ok() {
            rows += others.until(i64::MAX, lanes);
        }
        drop(others);
        let beside = match beside.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        done.and(beside)
    })?;
    work.told(rows);
    Ok(())
}

/// Rows of the other table, up to a moment.
struct InTurn {
    batches: Receiver<Vec<Told>>,
    batch: std::vec::IntoIter<Told>,
}

impl InTurn {
    fn new(batches: Receiver<Vec<Told>>) -> Self {
        Self {
            batches,
            batch: Vec::new().into_iter(),
        }
    }

    /// How many they were.
    fn until(&mut self, ts: i64, lanes: &mut LanesBuilder<'_, '_>) -> usize {
        let mut rows = 0;
        loop {
            while let Some(told) = self.batch.as_slice().first().copied() {
                if told.ts > ts {
                    return rows;
                }
                lanes.add(&told);
                rows += 1;
                self.batch.next();
            }
            match self.batches.recv() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(_) => return rows,
            }
        }
    }
}
