//! Block requests of each device, swept into intervals with a constant number of requests in
//! flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use whyslow_analysis::read::{Length, LostEnds, PerWord, Projection, Uncertain};
use whyslow_model::row::Row as _;
use whyslow_model::tables::BlockIoRow;

use crate::TilesError;
use crate::build::axis::Axis;
use crate::build::heat::HeatBuilder;
use crate::build::lanes::{LaneRow, LanesBuilder};
use crate::build::rows::Work;
use crate::build::series::SeriesBuilder;
use crate::build::tracks::cached;
use crate::item::Mix;
use crate::kinds::{BLOCK_OPS, OPS_OF_DEVICE};

const READ: usize = 0;
const WRITE: usize = 1;
const OTHER: usize = 2;
const UNSET: u8 = u8::MAX;

/// The devices of a recording: in order of appearance while rows are read, finally by device
/// number.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    slots: FxHashMap<i64, i32>,
    found: Vec<(i64, String)>,
}

impl Devices {
    /// `None` if there are more devices than lane ids.
    fn slot(&mut self, dev: i64, name: Option<&str>) -> Option<i32> {
        if let Some(slot) = self.slots.get(&dev) {
            return Some(*slot);
        }
        let slot = i32::try_from(self.found.len()).ok()?;
        slot.checked_mul(OPS_OF_DEVICE)?
            .checked_add(OPS_OF_DEVICE)?;
        self.found.push((dev, name.unwrap_or_default().to_owned()));
        self.slots.insert(dev, slot);
        Some(slot)
    }

    /// Final index of each slot.
    pub(crate) fn indices(&self) -> Vec<i32> {
        let mut order: Vec<usize> = (0..self.found.len()).collect();
        order.sort_unstable_by_key(|slot| self.found[*slot].0);
        let mut indices = vec![0; order.len()];
        for (index, slot) in (0..).zip(order) {
            indices[slot] = index;
        }
        indices
    }

    pub(crate) fn found(&self) -> &[(i64, String)] {
        &self.found
    }
}

/// Requests in flight on one device.
#[derive(Debug, Default)]
struct InFlight {
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    counts: [u32; 3],
    since: i64,
}

/// Queue depth and operations of a device between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    depth: i32,
    group: u8,
}

impl InFlight {
    fn phase(&self) -> Phase {
        let group = match self.counts.map(|count| count > 0) {
            [true, true, _] => 2,
            [true, false, _] => 0,
            [false, true, _] => 1,
            [false, false, _] => 3,
        };
        let depth: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        Phase {
            depth: depth.min(i32::MAX as u64) as i32,
            group,
        }
    }

    /// Completes the requests that end by `ts`.
    fn until(&mut self, ts: i64, each: &mut impl FnMut(i64, i64, Phase)) {
        while let Some(Reverse((end, _))) = self.ends.peek().copied()
            && end <= ts
        {
            self.change(end, each, |counts, ends| {
                while let Some(Reverse((at, class))) = ends.peek().copied()
                    && at == end
                {
                    ends.pop();
                    counts[class] -= 1;
                }
            });
        }
    }

    fn begin(
        &mut self,
        (ts, end): (i64, Option<i64>),
        class: usize,
        each: &mut impl FnMut(i64, i64, Phase),
    ) {
        self.until(ts, each);
        if end.is_some_and(|end| end <= ts) {
            return;
        }
        self.change(ts, each, |counts, ends| {
            counts[class] = counts[class].saturating_add(1);
            if let Some(end) = end {
                ends.push(Reverse((end, class)));
            }
        });
    }

    /// Ends the current phase and starts the next one.
    fn change(
        &mut self,
        at: i64,
        each: &mut impl FnMut(i64, i64, Phase),
        change: impl FnOnce(&mut [u32; 3], &mut BinaryHeap<Reverse<(i64, usize)>>),
    ) {
        let before = self.phase();
        change(&mut self.counts, &mut self.ends);
        if before.depth > 0 && at > self.since {
            each(self.since, at, before);
        }
        self.since = at;
    }
}

/// Sweeps the requests of all devices in order of time.
pub(crate) struct Sweep {
    /// No request starts before this, even if rows are out of order.
    reached: i64,
    devices: Devices,
    in_flight: Vec<InFlight>,
}

impl Sweep {
    pub(crate) fn new() -> Self {
        Self {
            reached: i64::MIN,
            devices: Devices::default(),
            in_flight: Vec::new(),
        }
    }

    fn request(
        &mut self,
        slot: i32,
        (ts, end): (i64, Option<i64>),
        op: u8,
        lanes: &mut LanesBuilder<'_, '_>,
    ) {
        let index = slot as usize;
        if index >= self.in_flight.len() {
            self.in_flight.resize_with(index + 1, InFlight::default);
        }
        self.reached = self.reached.max(ts);
        let class = match op {
            0 => READ,
            1 => WRITE,
            _ => OTHER,
        };
        let times = (self.reached, end);
        self.in_flight[index].begin(times, class, &mut |ts, end, phase| {
            lanes.add(&lane_row(slot, (ts, Some(end)), phase));
        });
    }

    /// Completes all requests; returns the devices.
    pub(crate) fn finish(mut self, lanes: &mut LanesBuilder<'_, '_>) -> Devices {
        for (slot, in_flight) in (0..).zip(&mut self.in_flight) {
            in_flight.until(i64::MAX, &mut |ts, end, phase| {
                lanes.add(&lane_row(slot, (ts, Some(end)), phase));
            });
            let rest = in_flight.phase();
            if rest.depth > 0 {
                lanes.add(&lane_row(slot, (in_flight.since, None), rest));
            }
        }
        self.devices
    }
}

fn lane_row(slot: i32, (ts, ts_end): (i64, Option<i64>), phase: Phase) -> LaneRow {
    LaneRow {
        lane: Some(i64::from(slot)),
        ts,
        ts_end,
        value: phase.depth,
        mix: Mix::Of(phase.group),
    }
}

/// Block requests: queue depth, heat map and bytes. Every row has a device.
pub(crate) fn block(
    work: &Work<'_>,
    axis: Axis,
    lanes: &mut LanesBuilder<'_, '_>,
    heat: &mut HeatBuilder<'_>,
    series: &mut SeriesBuilder,
) -> Result<Devices, TilesError> {
    let mut columns = Projection::new(BlockIoRow::TABLE);
    let names = ["ts", "ts_end", "dur", "dev", "bytes", "op", "dev_name"];
    let columns_of = names.map(|name| columns.need(name));
    let uncertain = Uncertain::new(work.tables, BlockIoRow::TABLE, &mut columns)?;
    let ends = LostEnds::read(work.tables)?;
    let mut sweep = Sweep::new();
    let mut ops = PerWord::new();
    work.each(&columns, |batch| {
        let [ts, ts_end, dur, dev, bytes, op, name] = columns_of;
        let (ts, ts_end, dur) = (ts.ints(batch)?, ts_end.ints(batch)?, dur.ints(batch)?);
        let (dev, bytes) = (dev.ints(batch)?, bytes.ints(batch)?);
        let (op, name) = (op.texts(batch)?, name.texts(batch)?);
        let uncertain = uncertain.of(batch)?;
        let ops = ops.of(&op, UNSET);
        for row in 0..batch.num_rows() as u32 {
            let last = BLOCK_OPS.len() as u8 - 1;
            let index = op.key(row).map_or(last, |key| {
                cached(ops, key, || {
                    let word = op.get(row).unwrap_or_default();
                    let index = BLOCK_OPS.iter().position(|op| *op == word);
                    index.map_or(last, |index| index as u8)
                })
            });
            let (begin, end) = (ts.at(row), ts_end.get(row));
            let slot = sweep.devices.slot(dev.at(row), name.get(row));
            let (Some(slot), Some((from, to))) = (slot, axis.clip(begin, end)) else {
                lanes.leave_out();
                continue;
            };
            let length = Length::of(dur.get(row), uncertain.has(row));
            let known = ends.known_end((begin, end), length);
            let is_open = end.is_none() && known >= ends.recording_end();
            sweep.request(slot, (begin, (!is_open).then_some(known)), index, lanes);
            let dur = dur.get(row).filter(|_| length == Length::Known);
            heat.add(slot * OPS_OF_DEVICE + i32::from(index), from, dur);
            let is_ended = end.is_some_and(|end| axis.holds(end));
            series.request(from, to, is_ended.then(|| bytes.at(row)));
        }
        Ok(())
    })?;
    Ok(sweep.finish(lanes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(requests: &[(i64, Option<i64>, usize)]) -> Vec<(i64, i64, i32, u8)> {
        let mut in_flight = InFlight::default();
        let mut phases = Vec::new();
        let mut each = |ts, end, phase: Phase| phases.push((ts, end, phase.depth, phase.group));
        for (ts, end, class) in requests {
            in_flight.begin((*ts, *end), *class, &mut each);
        }
        in_flight.until(i64::MAX, &mut each);
        phases
    }

    #[test]
    fn a_phase_is_as_long_as_nothing_changes() {
        let overlapping = [
            (0, Some(10), READ),
            (5, Some(8), WRITE),
            (20, Some(21), OTHER),
        ];
        let expected = [(0, 5, 1, 0), (5, 8, 2, 2), (8, 10, 1, 0), (20, 21, 1, 3)];
        assert_eq!(phases(&overlapping), expected);
        let next = [(0, Some(10), READ), (10, Some(12), READ)];
        assert_eq!(phases(&next), [(0, 10, 1, 0), (10, 12, 1, 0)]);
        let none = [(3, Some(3), READ), (4, Some(2), READ)];
        assert_eq!(phases(&none), []);
        let unfinished = [(0, None, WRITE), (5, Some(6), WRITE)];
        assert_eq!(phases(&unfinished), [(0, 5, 1, 1), (5, 6, 2, 1)]);
    }
}
