//! Lanes whose intervals come from two tables: both are read concurrently and merged by time.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::TilesError;
use crate::build::lanes::{LaneRow, LanesBuilder};
use crate::build::rows::Work;

/// Batches of the second table that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// Receives rows of a table one at a time.
type EachRow<'f> = &'f mut dyn FnMut(LaneRow);
/// Receives rows of a table in batches; returns `false` once no more are needed.
type EachBatch<'f> = &'f mut dyn FnMut(Vec<LaneRow>) -> bool;

/// Adds the rows of both tables by time. Only the first table reports progress while it is read.
pub(crate) fn by_time(
    work: &Work<'_>,
    lanes: &mut LanesBuilder<'_, '_>,
    first: impl FnOnce(&Work<'_>, EachRow<'_>) -> Result<(), TilesError>,
    second: impl FnOnce(&Work<'_>, EachBatch<'_>) -> Result<(), TilesError> + Send,
) -> Result<(), TilesError> {
    let (sender, batches) = sync_channel::<Vec<LaneRow>>(BATCHES_AHEAD);
    let (tables, cancel) = (work.tables, work.cancel);
    let mut rows = 0;
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let work = Work::silent(tables, cancel);
            // The receiver is dropped once no more batches are needed.
            second(&work, &mut |batch| sender.send(batch).is_ok())
        });
        let mut second = SecondTable::new(batches);
        let first_done = first(work, &mut |row| {
            rows += second.until(row.ts, lanes);
            lanes.add(&row);
        });
        if first_done.is_ok() {
            rows += second.until(i64::MAX, lanes);
        }
        drop(second);
        let second_done = match reader.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        first_done.and(second_done)
    })?;
    work.add_progress(rows);
    Ok(())
}

/// Rows of the second table that have not been added yet.
struct SecondTable {
    batches: Receiver<Vec<LaneRow>>,
    batch: std::vec::IntoIter<LaneRow>,
}

impl SecondTable {
    fn new(batches: Receiver<Vec<LaneRow>>) -> Self {
        Self {
            batches,
            batch: Vec::new().into_iter(),
        }
    }

    /// Adds the rows up to `ts`; returns their number.
    fn until(&mut self, ts: i64, lanes: &mut LanesBuilder<'_, '_>) -> usize {
        let mut rows = 0;
        loop {
            while let Some(row) = self.batch.as_slice().first().copied() {
                if row.ts > ts {
                    return rows;
                }
                lanes.add(&row);
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
