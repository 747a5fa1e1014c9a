//! Waits for locks: those of the kernel and those of programs lie in two tables, and a lane has both.

use std::sync::mpsc::{Receiver, sync_channel};

use arrow_array::RecordBatch;
use whyslow_analysis::read::{ColumnRef, PerWord, Projection};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{FutexCallRow, LockWaitRow};

use crate::TilesError;
use crate::build::lanes::{LanesBuilder, Told};
use crate::build::rows::Work;
use crate::build::tracks::looked_up;
use crate::item::Mix;
use crate::kinds::{LOCK_FUTEX, LOCK_KINDS, LOCK_OTHER};

const KERNEL: u8 = 0;
const PROGRAM: u8 = 1;
/// Batches of the other table that are read ahead.
const BATCHES_AHEAD: usize = 2;
/// Words of the column `op`, looked up.
const UNSET: u8 = u8::MAX;
const IS_WAIT: u8 = 1;

/// Columns of either table: where it lies in time, whose it is, and the word that tells what it is.
struct Columns {
    projection: Projection,
    numbers: [ColumnRef; 3],
    word: ColumnRef,
}

impl Columns {
    fn new(table: &'static whyslow_model::Table, word: &'static str) -> Self {
        let mut projection = Projection::new(table);
        let numbers = ["ts", "ts_end", "utid"].map(|name| projection.need(name));
        let word = projection.need(word);
        Self {
            projection,
            numbers,
            word,
        }
    }

    fn told(
        &self,
        batch: &RecordBatch,
        mut each: impl FnMut(Option<usize>, Option<&str>, Told),
    ) -> Result<(), TilesError> {
        let [ts, ts_end, utid] = self.numbers;
        let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
        let word = self.word.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let told = Told {
                lane: utid.get(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                value: i32::from(LOCK_FUTEX),
                mix: Mix::Of(PROGRAM),
            };
            each(word.key(row), word.get(row), told);
        }
        Ok(())
    }
}

pub(crate) fn locks(work: &Work<'_>, lanes: &mut LanesBuilder<'_, '_>) -> Result<(), TilesError> {
    let (sender, batches) = sync_channel::<Vec<Told>>(BATCHES_AHEAD);
    let (tables, cancel) = (work.tables, work.cancel);
    let mut rows = 0;
    std::thread::scope(|scope| {
        let futexes = scope.spawn(move || {
            let work = Work::beside(tables, cancel);
            // Whoever has no use for more drops the other end.
            futexes(&work, |told| sender.send(told).is_ok())
        });
        let mut others = InTurn::new(batches);
        let kernel = kernel(work, |told| {
            rows += others.until(told.ts, lanes);
            lanes.add(&told);
        });
        if kernel.is_ok() {
            rows += others.until(i64::MAX, lanes);
        }
        drop(others);
        let futexes = match futexes.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        kernel.and(futexes)
    })?;
    work.told(rows);
    Ok(())
}

fn kernel(work: &Work<'_>, mut each: impl FnMut(Told)) -> Result<(), TilesError> {
    let columns = Columns::new(LockWaitRow::TABLE, "kind");
    let mut kinds = PerWord::new();
    work.each(&columns.projection, |batch| {
        let word = columns.word.texts(batch)?;
        let kinds = kinds.of(&word, UNSET);
        columns.told(batch, |key, word, told| {
            let kind = key.map_or(LOCK_OTHER, |key| {
                looked_up(kinds, key, || {
                    let place = LOCK_KINDS.iter().position(|kind| Some(*kind) == word);
                    let place = place.map_or(LOCK_OTHER, |place| place as u8);
                    if place == LOCK_FUTEX {
                        LOCK_OTHER
                    } else {
                        place
                    }
                })
            });
            let is_program = kind > LOCK_FUTEX;
            each(Told {
                value: i32::from(kind),
                mix: Mix::Of(if is_program { PROGRAM } else { KERNEL }),
                ..told
            });
        })
    })
}

/// Waits of programs, a batch at a time, as long as they are wanted.
fn futexes(work: &Work<'_>, mut each: impl FnMut(Vec<Told>) -> bool) -> Result<(), TilesError> {
    let columns = Columns::new(FutexCallRow::TABLE, "op");
    let mut ops = PerWord::new();
    work.each(&columns.projection, |batch| {
        let word = columns.word.texts(batch)?;
        let ops = ops.of(&word, UNSET);
        let mut waits = Vec::new();
        columns.told(batch, |key, word, told| {
            let is_wait = || u8::from(word == Some("wait"));
            if key.is_some_and(|key| looked_up(ops, key, is_wait) == IS_WAIT) {
                waits.push(told);
            }
        })?;
        if each(waits) {
            Ok(())
        } else {
            Err(TilesError::Cancelled)
        }
    })
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
