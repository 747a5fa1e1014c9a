//! Counters, with the processes they belong to.

use whyslow_model::event::{ReportedCounters, StateCounters};
use whyslow_model::tables::{CounterRow, EmitAll};

use super::identity::{Here, Output};
use super::process::Processes;

#[derive(Debug, Default)]
pub(super) struct CounterTracker {
    next_id: i64,
}

impl CounterTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        counters: &StateCounters<'_>,
        (here, processes): (&Here, &Processes),
        out: &mut Output<'_, S>,
    ) {
        let process = counters.pid.and_then(|pid| processes.by_pid(pid));
        let mount = counters.mount;
        let mount_point = mount.map(|(.., place)| out.intern(place));
        for (counter, value) in counters.values.iter() {
            let row = CounterRow {
                id: self.next_id,
                ts: here.ts,
                name: out.symbols.intern(counter.name),
                value,
                unit: out.symbols.intern(counter.unit.name()),
                upid: process.map(|process| process.upid),
                pid: counters.pid,
                comm: process.and_then(|process| process.comm),
                mount_ns: mount.map(|(ns, ..)| ns),
                mount_id: mount.map(|(_, id, _)| id),
                mount_point,
                subject: None,
                interval_ns: None,
                reported_by: None,
            };
            out.sink.emit(row);
            self.next_id += 1;
        }
    }

    /// Values reported by other tools keep their names.
    pub(super) fn reported<S: EmitAll>(
        &mut self,
        counters: &ReportedCounters<'_>,
        (here, processes): (&Here, &Processes),
        out: &mut Output<'_, S>,
    ) {
        let process = counters.pid.and_then(|pid| processes.by_pid(pid));
        let comm = here.thread.and_then(|thread| thread.comm);
        let subject = counters.subject.map(|subject| out.intern(subject));
        let reported_by = out.symbols.intern(counters.reported_by);
        for (name, value, unit) in counters.values.iter() {
            let row = CounterRow {
                id: self.next_id,
                ts: here.ts,
                name: out.symbols.intern(name),
                value,
                unit: out.symbols.intern(unit.name()),
                upid: process.map(|process| process.upid),
                pid: counters.pid,
                comm: process.and_then(|process| process.comm).or(comm),
                mount_ns: None,
                mount_id: None,
                mount_point: None,
                subject,
                interval_ns: counters.interval,
                reported_by: Some(reported_by),
            };
            out.sink.emit(row);
            self.next_id += 1;
        }
    }
}
