//! Where in time something was lost, to be asked whether a state may have changed unseen.
//!
//! A source tells a range per packet: nothing was lost before it, something within it. Events of
//! that packet may lie in the range, before or after what was lost, so both its ends are moments
//! from which nothing can be taken as still holding: at its begin what was known before becomes
//! doubtful, at its end what was learnt within.

use whyslow_model::event::{Loss, LossKind};
use whyslow_model::tables::{EmitAll, LostEventsRow};
use whyslow_model::{Ns, stat};

use super::CPUS_MAX;
use super::identity::Output;

/// Ends of ranges kept for one CPU. Beyond that the older half is forgotten.
const POINTS_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Losses {
    /// By CPU, sorted.
    cpus: Vec<Vec<Ns>>,
    /// Of streams that belong to no CPU, or to several.
    all: Vec<Ns>,
    next_id: i64,
}

impl Losses {
    pub(super) fn add<S: EmitAll>(&mut self, loss: &Loss<'_>, out: &mut Output<'_, S>) {
        self.write(loss, out);
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

    /// The first moment in `since..until` from which what was known of the CPU is doubtful. The
    /// last event of a packet often has the time of its end, so what began at such a moment is
    /// doubtful too.
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
