//! Waits for locks: those of the kernel and those of programs lie in two tables, and a lane has both.

use arrow_array::RecordBatch;
use whyslow_analysis::read::{ColumnRef, PerWord, Projection};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{FutexCallRow, LockWaitRow};

use crate::TilesError;
use crate::build::in_turn;
use crate::build::lanes::{LanesBuilder, Told};
use crate::build::rows::Work;
use crate::build::tracks::looked_up;
use crate::item::Mix;
use crate::kinds::{LOCK_FUTEX, LOCK_KINDS, LOCK_OTHER};

const KERNEL: u8 = 0;
const PROGRAM: u8 = 1;
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
    in_turn::both(work, lanes, kernel, futexes)
}

fn kernel(work: &Work<'_>, each: &mut dyn FnMut(Told)) -> Result<(), TilesError> {
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
fn futexes(work: &Work<'_>, each: &mut dyn FnMut(Vec<Told>) -> bool) -> Result<(), TilesError> {
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
