//! Times of losses, for checking whether a state may have changed unnoticed.
//!
//! A source reports time ranges: events were lost within a range, and none before. Where the source
//! only knows the packet, events of that packet may be in the range, before or after the lost ones.
//! So both ends of the range invalidate state: its start invalidates what was known before, its end
//! what was learned within it. What one CPU reports about a thread of another is also invalid
//! inside of a range of the other.

use whyslow_model::event::{Hidden, Loss, LossKind};
use whyslow_model::tables::{EmitAll, LostEventsRow};
use whyslow_model::{Ns, stat};

use super::identity::Output;
use super::loss_ranges::LossRanges;
use crate::limits::CPUS_MAX;

/// Maximum number of range ends kept per CPU. Above it the older half is dropped.
const POINTS_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Losses {
    /// By CPU, sorted.
    cpus: Vec<Vec<Ns>>,
    /// For streams that belong to no CPU, or to several.
    all: Vec<Ns>,
    ranges: LossRanges,
    next_id: i64,
}

impl Losses {
    pub(super) fn add<S: EmitAll>(&mut self, loss: &Loss<'_>, out: &mut Output<'_, S>) {
        self.write(loss, out);
        if !Hidden::of_stream(loss.stream).may_be(Hidden::Threads) {
            return;
        }
        self.ranges.add(loss);
        let points = match loss.cpu.and_then(|cpu| usize::try_from(cpu).ok()) {
            Some(cpu) if cpu < CPUS_MAX => {
                if self.cpus.len() <= cpu {
                    self.cpus.resize_with(cpu + 1, Vec::new);
                }
                &mut self.cpus[cpu]
            }
            _ => &mut self.all,
        };
        for point in [Some(loss.ts), loss.ts_end].into_iter().flatten() {
            let place = points.partition_point(|&other| other < point);
            if points.get(place) != Some(&point) {
                points.insert(place, point);
            }
        }
        if points.len() > POINTS_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, loss.ts);
            points.drain(..POINTS_MAX / 2);
        }
    }

    /// The first time in `since..until` at which state of the CPU was invalidated. The last event
    /// of a packet often has the same time as its end, so state that started at such a time is
    /// invalid, too.
    pub(super) fn first_between(&self, cpu: Option<i32>, since: Ns, until: Ns) -> Option<Ns> {
        let of_cpu = cpu
            .and_then(|cpu| usize::try_from(cpu).ok())
            .and_then(|cpu| self.cpus.get(cpu))
            .map_or(&[][..], Vec::as_slice);
        [of_cpu, &self.all]
            .into_iter()
            .filter_map(|points| {
                let place = points.partition_point(|&point| point < since);
                points.get(place).copied().filter(|&point| point < until)
            })
            .min()
    }

    /// The same for state of a CPU that another one reported: no event of the CPU shows that nothing
    /// was lost before or after that time, so a range that merely overlaps counts, too.
    pub(super) fn first_overlap(&self, cpu: Option<i32>, since: Ns, until: Ns) -> Option<Ns> {
        if cpu.is_some() && self.ranges.covers(cpu, since) {
            return Some(since);
        }
        self.first_between(cpu, since, until)
    }

    fn write<S: EmitAll>(&mut self, loss: &Loss<'_>, out: &mut Output<'_, S>) {
        let kind = match loss.kind {
            LossKind::Events => "events",
            LossKind::Packets => "packets",
            LossKind::Bytes => "bytes",
        };
        out.sink.emit(LostEventsRow {
            id: self.next_id,
            ts: loss.ts,
            dur: loss.ts_end.map(|ts_end| ts_end - loss.ts),
            ts_end: loss.ts_end,
            cpu: loss.cpu,
            stream: out.symbols.intern(loss.stream),
            kind: out.symbols.intern_static(kind),
            count: loss.count,
        });
        self.next_id += 1;
    }
}
