//! Builds the lanes of one track from rows in order of time.

use rustc_hash::FxHashMap;

use crate::LeftOut;
use crate::build::axis::Axis;
use crate::build::buffer::{Buffered, LaneBuffer, Store};
use crate::build::tree::{Sink, Tree};
use crate::item::{Interval, Mix, Sum, Times, WHOLE};
use crate::store::block::ItemKind;
use crate::store::directory::{LaneEntry, Lanes};

/// One interval of a lane, as read from a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneRow {
    pub(crate) lane: Option<i64>,
    pub(crate) ts: i64,
    /// If unknown, the interval ends when the next one of its lane starts, or with the recording.
    pub(crate) ts_end: Option<i64>,
    pub(crate) value: i32,
    pub(crate) mix: Mix,
}

/// Called with every interval as it will be drawn.
pub(crate) type Watch<'w> = dyn FnMut(&Interval) + 'w;

pub(crate) struct LanesBuilder<'p, 'w> {
    axis: Axis,
    store: Store<'p>,
    watch: &'w mut Watch<'w>,
    lanes: Vec<Lane>,
    by_id: FxHashMap<i32, u32>,
    left_out: LeftOut,
}

#[derive(Debug)]
struct Lane {
    id: i32,
    state: LaneState,
    buffer: LaneBuffer,
    unfinished: Option<Interval>,
}

/// State of a lane while its rows are read.
#[derive(Debug, Default)]
struct LaneState {
    tree: Tree,
    first: Option<u64>,
    /// End of the last interval.
    reached: u64,
    intervals: u64,
    /// Whole ns; `times` holds the remainders in ns / [`WHOLE`].
    times_ns: [u64; 4],
    times: Times,
}

impl Buffered for Lane {
    fn bytes(&self) -> usize {
        self.buffer.bytes() + self.state.tree.bytes()
    }

    fn write(&mut self, slot: u32, store: &mut Store<'_>) {
        let before = self.state.tree.bytes();
        self.state.tree.finish(&mut LaneSink {
            slot,
            buffer: &mut self.buffer,
            store,
        });
        store.account(before, 0);
        self.buffer.flush(slot, store);
    }
}

struct LaneSink<'l, 'p> {
    slot: u32,
    buffer: &'l mut LaneBuffer,
    store: &'l mut Store<'p>,
}

impl Sink for LaneSink<'_, '_> {
    fn interval(&mut self, mark: u8, interval: &Interval) {
        let kind = (mark, ItemKind::Interval);
        self.buffer.put(self.slot, kind, self.store, |pending| {
            pending.interval(interval);
        });
    }

    fn sum(&mut self, mark: u8, sum: &Sum) {
        let kind = (mark, ItemKind::Sum);
        self.buffer
            .put(self.slot, kind, self.store, |pending| pending.sum(sum));
    }
}

impl LaneState {
    fn push(&mut self, interval: Interval, sink: &mut LaneSink<'_, '_>, watch: &mut Watch<'_>) {
        watch(&interval);
        self.first.get_or_insert(interval.begin);
        self.reached = interval.end;
        self.intervals += 1;
        interval
            .mix
            .add(interval.end - interval.begin, &mut self.times);
        for (whole, rest) in self.times_ns.iter_mut().zip(&mut self.times) {
            *whole = whole.saturating_add(*rest / WHOLE);
            *rest %= WHOLE;
        }
        let before = self.tree.bytes();
        self.tree.push(interval, sink);
        sink.store.account(before, self.tree.bytes());
    }
}

impl<'p, 'w> LanesBuilder<'p, 'w> {
    pub(crate) fn new(axis: Axis, store: Store<'p>, watch: &'w mut Watch<'w>) -> Self {
        Self {
            axis,
            store,
            watch,
            lanes: Vec::new(),
            by_id: FxHashMap::default(),
            left_out: LeftOut::default(),
        }
    }

    /// Adds a row. Rows must come in order of `ts`.
    pub(crate) fn add(&mut self, row: &LaneRow) {
        let Some(id) = row.lane.and_then(|lane| i32::try_from(lane).ok()) else {
            self.left_out.without_lane += 1;
            return;
        };
        let Some((begin, end)) = self.axis.clip(row.ts, row.ts_end) else {
            self.left_out.outside += 1;
            return;
        };
        let interval = Interval {
            begin,
            end,
            value: row.value,
            mix: row.mix,
        };
        let slot = self.slot(id);
        self.put(slot, interval, row.ts_end.is_none());
        self.store.enforce_limit(&mut self.lanes);
    }

    /// Counts a row that lies outside the time of the recording.
    pub(crate) fn leave_out(&mut self) {
        self.left_out.outside += 1;
    }

    fn slot(&mut self, id: i32) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            self.lanes.push(Lane {
                id,
                state: LaneState::default(),
                buffer: LaneBuffer::default(),
                unfinished: None,
            });
            self.lanes.len() as u32 - 1
        })
    }

    fn put(&mut self, slot: u32, mut interval: Interval, is_unfinished: bool) {
        let lane = &mut self.lanes[slot as usize];
        let mut sink = LaneSink {
            slot,
            buffer: &mut lane.buffer,
            store: &mut self.store,
        };
        if let Some(mut before) = lane.unfinished.take() {
            before.end = interval.begin.max(before.begin);
            lane.state.push(before, &mut sink, self.watch);
        }
        let reached = lane.state.reached;
        if interval.begin < reached {
            if interval.end <= reached {
                self.left_out.hidden += 1;
                return;
            }
            self.left_out.cut += 1;
            interval.begin = reached;
        }
        if is_unfinished {
            lane.unfinished = Some(interval);
        } else {
            lane.state.push(interval, &mut sink, self.watch);
        }
    }

    /// Writes what is left, and the index of each lane. `name` maps an id to the final id and the
    /// device of the lane.
    pub(crate) fn finish(
        mut self,
        name: impl Fn(i32) -> (i32, Option<(i64, String)>),
    ) -> (Lanes, usize) {
        let mut order: Vec<(i32, u32)> = self.by_id.drain().collect();
        order.sort_unstable();
        for (_, slot) in order {
            let lane = &mut self.lanes[slot as usize];
            let mut sink = LaneSink {
                slot,
                buffer: &mut lane.buffer,
                store: &mut self.store,
            };
            if let Some(last) = lane.unfinished.take() {
                lane.state.push(last, &mut sink, self.watch);
            }
            lane.write(slot, &mut self.store);
        }
        let lanes = self.lanes.iter().map(|lane| {
            let (id, device) = name(lane.id);
            let state = &lane.state;
            LaneEntry {
                id,
                device,
                first: state.first.unwrap_or(0),
                last: state.reached,
                intervals: state.intervals,
                times_ns: state.times_ns,
                ..LaneEntry::default()
            }
        });
        let lanes = self.store.finish(self.left_out, lanes.collect());
        (lanes, self.store.buffered_peak())
    }
}
