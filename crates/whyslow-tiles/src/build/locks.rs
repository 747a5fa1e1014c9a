//! Lock waits: kernel locks and user-space locks come from two tables; a lane shows both.

use arrow_array::RecordBatch;
use whyslow_analysis::read::{ColumnRef, PerWord, Projection};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{FutexCallRow, LockWaitRow};

use crate::TilesError;
use crate::build::lanes::{LaneRow, LanesBuilder};
use crate::build::merge;
use crate::build::rows::Work;
use crate::build::tracks::cached;
use crate::item::Mix;
use crate::kinds::{LOCK_FUTEX, LOCK_KINDS, LOCK_OTHER};

const KERNEL: u8 = 0;
const PROGRAM: u8 = 1;
/// Cache entry that is not computed yet.
const UNSET: u8 = u8::MAX;
const IS_WAIT: u8 = 1;

/// Columns of either table: time, thread, and the column with the kind of wait.
struct Columns {
    projection: Projection,
    numbers: [ColumnRef; 3],
    kind: ColumnRef,
}

impl Columns {
    fn new(table: &'static whyslow_model::Table, kind: &'static str) -> Self {
        let mut projection = Projection::new(table);
        let numbers = ["ts", "ts_end", "utid"].map(|name| projection.need(name));
        let kind = projection.need(kind);
        Self {
            projection,
            numbers,
            kind,
        }
    }

    fn lane_rows(
        &self,
        batch: &RecordBatch,
        mut each: impl FnMut(Option<usize>, Option<&str>, LaneRow),
    ) -> Result<(), TilesError> {
        let [ts, ts_end, utid] = self.numbers;
        let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
        let kind = self.kind.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let lane_row = LaneRow {
                lane: utid.get(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                value: i32::from(LOCK_FUTEX),
                mix: Mix::Of(PROGRAM),
            };
            each(kind.key(row), kind.get(row), lane_row);
        }
        Ok(())
    }
}

pub(crate) fn locks(work: &Work<'_>, lanes: &mut LanesBuilder<'_, '_>) -> Result<(), TilesError> {
    merge::by_time(work, lanes, kernel, futexes)
}

fn kernel(work: &Work<'_>, each: &mut dyn FnMut(LaneRow)) -> Result<(), TilesError> {
    let columns = Columns::new(LockWaitRow::TABLE, "kind");
    let mut kinds = PerWord::new();
    work.each(&columns.projection, |batch| {
        let texts = columns.kind.texts(batch)?;
        let kinds = kinds.of(&texts, UNSET);
        columns.lane_rows(batch, |key, text, lane_row| {
            let kind = key.map_or(LOCK_OTHER, |key| {
                cached(kinds, key, || {
                    let index = LOCK_KINDS.iter().position(|kind| Some(*kind) == text);
                    let index = index.map_or(LOCK_OTHER, |index| index as u8);
                    if index == LOCK_FUTEX {
                        LOCK_OTHER
                    } else {
                        index
                    }
                })
            });
            let is_program = kind > LOCK_FUTEX;
            each(LaneRow {
                value: i32::from(kind),
                mix: Mix::Of(if is_program { PROGRAM } else { KERNEL }),
                ..lane_row
            });
        })
    })
}

/// Futex waits, in batches until `each` returns `false`.
fn futexes(work: &Work<'_>, each: &mut dyn FnMut(Vec<LaneRow>) -> bool) -> Result<(), TilesError> {
    let columns = Columns::new(FutexCallRow::TABLE, "op");
    let mut ops = PerWord::new();
    work.each(&columns.projection, |batch| {
        let texts = columns.kind.texts(batch)?;
        let ops = ops.of(&texts, UNSET);
        let mut waits = Vec::new();
        columns.lane_rows(batch, |key, text, lane_row| {
            let is_wait = || u8::from(text == Some("wait"));
            if key.is_some_and(|key| cached(ops, key, is_wait) == IS_WAIT) {
                waits.push(lane_row);
            }
        })?;
        if each(waits) {
            Ok(())
        } else {
            Err(TilesError::Cancelled)
        }
    })
}
