//! Tracks that show the rows of one table unchanged: thread states, CPU slices, system calls.

use whyslow_analysis::read::{PerWord, Projection};
use whyslow_model::row::Row as _;
use whyslow_model::syscall::Op;
use whyslow_model::tables::{SchedSliceRow, SyscallRow, THREAD_STATES, ThreadStateRow};

use crate::TilesError;
use crate::build::axis::Axis;
use crate::build::heat::HeatBuilder;
use crate::build::lanes::{LaneRow, LanesBuilder};
use crate::build::rows::Work;
use crate::build::series::SeriesBuilder;
use crate::item::Mix;
use crate::kinds::{call_group, op_index};

/// Cache entry that is not computed yet.
const UNSET: u8 = u8::MAX;

/// Computes the value of a dictionary key once.
#[inline]
pub(crate) fn cached(cache: &mut [u8], key: usize, compute: impl FnOnce() -> u8) -> u8 {
    match cache.get(key) {
        Some(&UNSET) | None => {
            let value = compute();
            if let Some(entry) = cache.get_mut(key) {
                *entry = value;
            }
            value
        }
        Some(&value) => value,
    }
}

pub(crate) const UNINTERRUPTIBLE: i32 = 3;

pub(crate) fn states(work: &Work<'_>, lanes: &mut LanesBuilder<'_, '_>) -> Result<(), TilesError> {
    let mut columns = Projection::new(ThreadStateRow::TABLE);
    let [ts, ts_end, utid, state] =
        ["ts", "ts_end", "utid", "state"].map(|name| columns.need(name));
    let mut indices = PerWord::new();
    work.each(&columns, |batch| {
        let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
        let state = state.texts(batch)?;
        let indices = indices.of(&state, UNSET);
        for row in 0..batch.num_rows() as u32 {
            let unknown = THREAD_STATES.len() as u8 - 1;
            let value = state.key(row).map_or(unknown, |key| {
                cached(indices, key, || {
                    let word = state.get(row).unwrap_or_default();
                    let index = THREAD_STATES.iter().position(|state| *state == word);
                    index.map_or(unknown, |index| index as u8)
                })
            });
            let group = match THREAD_STATES[usize::from(value)] {
                "running" => 0,
                "runnable" => 1,
                "uninterruptible" => 2,
                _ => 3,
            };
            lanes.add(&LaneRow {
                lane: utid.get(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                value: i32::from(value),
                mix: Mix::Of(group),
            });
        }
        Ok(())
    })
}

pub(crate) fn cpus(work: &Work<'_>, lanes: &mut LanesBuilder<'_, '_>) -> Result<(), TilesError> {
    let mut columns = Projection::new(SchedSliceRow::TABLE);
    let names = [
        "ts",
        "ts_end",
        "cpu",
        "utid",
        "system_ns",
        "hardirq_ns",
        "softirq_ns",
    ];
    let columns_of = names.map(|name| columns.need(name));
    work.each(&columns, |batch| {
        let [ts, ts_end, cpu, utid, system, hard, soft] = columns_of;
        let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
        let (cpu, utid) = (cpu.ints(batch)?, utid.ints(batch)?);
        let (system, hard, soft) = (system.ints(batch)?, hard.ints(batch)?, soft.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let (begin, end) = (ts.at(row), ts_end.get(row));
            let interrupts = hard.or_zero(row).saturating_add(soft.or_zero(row));
            let length = end.map_or(0, |end| end.saturating_sub(begin));
            let mix = match (
                part_of(system.or_zero(row), length),
                part_of(interrupts, length),
            ) {
                (0, 0) => Mix::Of(0),
                (system, interrupts) => Mix::Parts(system, interrupts),
            };
            lanes.add(&LaneRow {
                lane: cpu.get(row),
                ts: begin,
                ts_end: end,
                value: utid.get(row).unwrap_or(-1) as i32,
                mix,
            });
        }
        Ok(())
    })
}

/// `part` of `whole`, scaled to 255.
fn part_of(part: i64, whole: i64) -> u8 {
    if whole <= 0 {
        return 0;
    }
    let rounded = (i128::from(part.max(0)) * 255 + i128::from(whole / 2)) / i128::from(whole);
    rounded.min(255) as u8
}

/// System calls: their lanes, the heat map of those that do I/O, and their rate.
pub(crate) fn calls(
    work: &Work<'_>,
    axis: Axis,
    lanes: &mut LanesBuilder<'_, '_>,
    heat: &mut HeatBuilder<'_>,
    series: &mut SeriesBuilder,
) -> Result<(), TilesError> {
    let mut columns = Projection::new(SyscallRow::TABLE);
    let names = ["ts", "ts_end", "dur", "utid", "op", "fd_class"];
    let columns_of = names.map(|name| columns.need(name));
    let (mut ops, mut classes) = (PerWord::new(), PerWord::new());
    work.each(&columns, |batch| {
        let [ts, ts_end, dur, utid, op, class] = columns_of;
        let (ts, ts_end, dur) = (ts.ints(batch)?, ts_end.ints(batch)?, dur.ints(batch)?);
        let (utid, op, class) = (utid.ints(batch)?, op.texts(batch)?, class.texts(batch)?);
        let ops = ops.of(&op, UNSET);
        let classes = classes.of(&class, None::<[u8; Op::ALL.len()]>);
        for row in 0..batch.num_rows() as u32 {
            let other = Op::ALL.len() as u8 - 1;
            let index = op.key(row).map_or(other, |key| {
                cached(ops, key, || op_index(op.get(row).unwrap_or_default()))
            });
            let called = Op::ALL[usize::from(index)];
            let group = match class.key(row).and_then(|key| classes.get_mut(key)) {
                None => call_group(called, None),
                Some(groups) => groups.get_or_insert_with(|| {
                    let class = class.get(row);
                    Op::ALL.map(|op| call_group(op, class))
                })[usize::from(index)],
            };
            let begin = ts.at(row);
            lanes.add(&LaneRow {
                lane: utid.get(row),
                ts: begin,
                ts_end: ts_end.get(row),
                value: i32::from(index),
                mix: Mix::Of(group),
            });
            if let Some((column, _)) = axis.clip(begin, ts_end.get(row)) {
                series.call(column);
                if called.is_io() {
                    heat.add(i32::from(index), column, dur.get(row));
                }
            }
        }
        Ok(())
    })
}

/// Tables that a build reads.
pub(crate) const READ: [&str; 8] = [
    "thread_state",
    "sched_slice",
    "syscall",
    "lock_wait",
    "futex_call",
    "block_io",
    "stack_sample",
    "sample_gap",
];

/// Keeps the id of a lane.
pub(crate) fn plain(id: i32) -> (i32, Option<(i64, String)>) {
    (id, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_they_are_looked_for() {
        assert_eq!(THREAD_STATES[UNINTERRUPTIBLE as usize], "uninterruptible");
        assert_eq!(crate::kinds::KINDS[0].values()[3], "uninterruptible");
    }

    #[test]
    fn parts_are_of_255() {
        let check = |part, whole, of| assert_eq!(part_of(part, whole), of, "{part} of {whole}");
        check(0, 0, 0);
        check(1, 2, 128);
        check(7, 7, 255);
        check(-7, 7, 0);
        check(i64::MAX, 7, 255);
        check(i64::MAX, i64::MAX, 255);
    }
}
