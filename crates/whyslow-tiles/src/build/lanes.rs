//! The lanes of one track, while rows come in order of time.

use rustc_hash::FxHashMap;

use crate::LeftOut;
use crate::build::axis::Axis;
use crate::build::tree::{Sink, Tree};
use crate::build::waiting::{Holder, Store, Waiting};
use crate::item::{Interval, Mix, Sum, Times, WHOLE};
use crate::store::block::Sort;
use crate::store::directory::{LaneAt, Lanes};

/// What a row says of a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) lane: Option<i64>,
    pub(crate) ts: i64,
    /// Where it is not known, the interval ends when the next one of its lane begins, or with the
    /// recording.
    pub(crate) ts_end: Option<i64>,
    pub(crate) value: i32,
    pub(crate) mix: Mix,
}

/// Is shown every interval as it will be drawn.
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
    row: Row,
    waiting: Waiting,
    unfinished: Option<Interval>,
}

/// What is known of a lane's intervals so far.
#[derive(Debug, Default)]
struct Row {
    tree: Tree,
    first: Option<u64>,
    /// Where the last interval ends.
    reached: u64,
    intervals: u64,
    /// In ns, and what is left in parts of it.
    times_ns: [u64; 4],
    times: Times,
}

impl Holder for Lane {
    fn bytes(&self) -> usize {
        self.waiting.bytes() + self.row.tree.bytes()
    }

    fn write(&mut self, slot: u32, store: &mut Store<'_>) {
        let before = self.row.tree.bytes();
        self.row.tree.finish(&mut LaneSink {
            slot,
            waiting: &mut self.waiting,
            store,
        });
        store.hold(before, 0);
        self.waiting.flush(slot, store);
    }
}

struct LaneSink<'l, 'p> {
    slot: u32,
    waiting: &'l mut Waiting,
    store: &'l mut Store<'p>,
}

impl Sink for LaneSink<'_, '_> {
    fn interval(&mut self, mark: u8, interval: &Interval) {
        let kind = (mark, Sort::Interval);
        self.waiting.put(self.slot, kind, self.store, |pending| {
            pending.interval(interval);
        });
    }

    fn sum(&mut self, mark: u8, sum: &Sum) {
        let kind = (mark, Sort::Sum);
        self.waiting
            .put(self.slot, kind, self.store, |pending| pending.sum(sum));
    }
}

impl Row {
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
        sink.store.hold(before, self.tree.bytes());
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

    /// Rows come in order of `ts`.
    pub(crate) fn add(&mut self, told: &Told) {
        let Some(id) = told.lane.and_then(|lane| i32::try_from(lane).ok()) else {
            self.left_out.without_lane += 1;
            return;
        };
        let Some((begin, end)) = self.axis.clip(told.ts, told.ts_end) else {
            self.left_out.outside += 1;
            return;
        };
        let interval = Interval {
            begin,
            end,
            value: told.value,
            mix: told.mix,
        };
        let slot = self.slot(id);
        self.put(slot, interval, told.ts_end.is_none());
        self.store.relieve(&mut self.lanes);
    }

    /// A row that lies outside of the recording's time, as whoever read it has found.
    pub(crate) fn leave_out(&mut self) {
        self.left_out.outside += 1;
    }

    fn slot(&mut self, id: i32) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            self.lanes.push(Lane {
                id,
                row: Row::default(),
                waiting: Waiting::default(),
                unfinished: None,
            });
            self.lanes.len() as u32 - 1
        })
    }

    fn put(&mut self, slot: u32, mut interval: Interval, is_unfinished: bool) {
        let lane = &mut self.lanes[slot as usize];
        let mut sink = LaneSink {
            slot,
            waiting: &mut lane.waiting,
            store: &mut self.store,
        };
        if let Some(mut before) = lane.unfinished.take() {
            before.end = interval.begin.max(before.begin);
            lane.row.push(before, &mut sink, self.watch);
        }
        let reached = lane.row.reached;
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
            lane.row.push(interval, &mut sink, self.watch);
        }
    }

    /// Writes what is left, and the lanes' indexes. `name` tells the id and the device that lanes
    /// of this id have in the end.
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
                waiting: &mut lane.waiting,
                store: &mut self.store,
            };
            if let Some(last) = lane.unfinished.take() {
                lane.row.push(last, &mut sink, self.watch);
            }
            lane.write(slot, &mut self.store);
        }
        let lanes = self.lanes.iter().map(|lane| {
            let (id, device) = name(lane.id);
            let row = &lane.row;
            LaneAt {
                id,
                device,
                first: row.first.unwrap_or(0),
                last: row.reached,
                intervals: row.intervals,
                times_ns: row.times_ns,
                ..LaneAt::default()
            }
        });
        let lanes = self.store.finish(self.left_out, lanes.collect());
        (lanes, self.store.most_held())
    }
}
