//! Scheduling as switches, from which trace viewers derive slices and thread states.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use whyslow_analysis::read::{Projection, in_order};
use whyslow_analysis::{Filter, Kind, Query, Verb, each_row};
use whyslow_model::row::Row as _;
use whyslow_model::tables::WakeupRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::proto::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWakeup, TracePacket};
use super::writer::Writer;
use crate::ExportError;

/// Number of events of a CPU that are written at once.
const BUNDLE: usize = 512;
const IDLE: &str = "swapper";
/// The kernel's flags for the context of an event.
const IN_HARDIRQ: u32 = 0x08;
const IN_SOFTIRQ: u32 = 0x10;

/// The thread on a CPU, and until when.
#[derive(Debug, Clone)]
struct OnCpu {
    tid: i32,
    comm: String,
    prio: i32,
    end: Option<Ns>,
    end_state: i64,
}

#[derive(Default)]
struct Cpu {
    on: Option<OnCpu>,
    events: Vec<FtraceEvent>,
}

#[derive(Default)]
struct Cpus(BTreeMap<i64, Cpu>);

impl Cpus {
    fn push(
        &mut self,
        writer: &mut Writer<'_>,
        cpu: i64,
        event: FtraceEvent,
    ) -> Result<(), ExportError> {
        let events = &mut self.0.entry(cpu).or_default().events;
        events.push(event);
        if events.len() < BUNDLE {
            return Ok(());
        }
        let full = std::mem::take(events);
        write(writer, cpu, full)
    }

    fn flush(&mut self, writer: &mut Writer<'_>) -> Result<(), ExportError> {
        for (cpu, of) in &mut self.0 {
            let events = std::mem::take(&mut of.events);
            if !events.is_empty() {
                write(writer, *cpu, events)?;
            }
        }
        Ok(())
    }
}

fn write(writer: &mut Writer<'_>, cpu: i64, event: Vec<FtraceEvent>) -> Result<(), ExportError> {
    writer.packet(&TracePacket {
        ftrace_events: Some(FtraceEventBundle {
            cpu: Some(cpu as u32),
            event,
        }),
        ..TracePacket::default()
    })
}

/// Bits of `prev_state` as printed by kernels since 4.14.
fn state_bits(state: Option<&str>) -> i64 {
    match state {
        Some("S") => 0x01,
        Some("D") => 0x02,
        Some("T") => 0x04,
        Some("t") => 0x08,
        Some("X") => 0x10,
        Some("Z") => 0x20,
        Some("P") => 0x40,
        Some("I") => 0x80,
        Some("R+") => 0x100,
        _ => 0,
    }
}

const COLUMNS: [&str; 8] = [
    "ts_ns",
    "dur_ns",
    "cpu",
    "comm",
    "pid",
    "tid",
    "prio",
    "end_state",
];

/// Writes switches; returns the number of slices.
pub(super) fn slices(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let query = Query {
        window,
        filter: filter.clone(),
        ..Query::new(Kind::Cpu, Verb::Log)
    };
    let mut cpus = Cpus::default();
    let mut count = 0;
    let mut failed = None;
    each_row(tables, &query, &COLUMNS, &mut |row| {
        let [ts, dur, cpu, comm, _, tid, prio, end_state] = COLUMNS;
        let (Some(begin), Some(cpu)) = (row.int(ts), row.int(cpu)) else {
            return ControlFlow::Continue(());
        };
        let next = OnCpu {
            tid: row.int(tid).unwrap_or(-1) as i32,
            comm: row.text(comm).unwrap_or("?").to_owned(),
            prio: row.int(prio).unwrap_or(120) as i32,
            end: row.int(dur).map(|dur| begin.saturating_add(dur)),
            end_state: state_bits(row.text(end_state)),
        };
        count += 1;
        match switched(&mut cpus, writer, cpu, begin, next) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let numbers: Vec<i64> = cpus.0.keys().copied().collect();
    for cpu in numbers {
        let on = cpus.0.get_mut(&cpu).and_then(|of| of.on.take());
        if let Some((on, end)) = on.and_then(|on| on.end.map(|end| (on, end))) {
            let event = switch(end, Some(&on), None);
            cpus.push(writer, cpu, event)?;
        }
    }
    cpus.flush(writer)?;
    Ok(count)
}

/// Switches to another thread: directly from the previous one, or after a time in which the CPU was
/// idle (or ran a thread that the filter excludes).
fn switched(
    cpus: &mut Cpus,
    writer: &mut Writer<'_>,
    cpu: i64,
    begin: Ns,
    next: OnCpu,
) -> Result<(), ExportError> {
    let before = cpus.0.entry(cpu).or_default().on.take();
    let event = match &before {
        Some(before) => match before.end.filter(|end| *end < begin) {
            Some(end) => {
                let left = switch(end, Some(before), None);
                cpus.push(writer, cpu, left)?;
                switch(begin, None, Some(&next))
            }
            None => switch(begin, Some(before), Some(&next)),
        },
        None => switch(begin, None, Some(&next)),
    };
    cpus.push(writer, cpu, event)?;
    cpus.0.entry(cpu).or_default().on = Some(next);
    Ok(())
}

fn switch(at: Ns, from: Option<&OnCpu>, to: Option<&OnCpu>) -> FtraceEvent {
    let comm = |on: Option<&OnCpu>| on.map_or(IDLE, |on| on.comm.as_str()).to_owned();
    let tid = |on: Option<&OnCpu>| on.map_or(0, |on| on.tid);
    let prio = |on: Option<&OnCpu>| on.map_or(120, |on| on.prio);
    FtraceEvent {
        timestamp: Some(at as u64),
        pid: Some(tid(from) as u32),
        sched_switch: Some(SchedSwitch {
            prev_comm: Some(comm(from)),
            prev_pid: Some(tid(from)),
            prev_prio: Some(prio(from)),
            prev_state: Some(from.map_or(0, |on| on.end_state)),
            next_comm: Some(comm(to)),
            next_pid: Some(tid(to)),
            next_prio: Some(prio(to)),
        }),
        ..FtraceEvent::default()
    }
}

/// Writes wakeups of all threads; returns their number.
pub(super) fn wakeups(
    tables: &dyn Tables,
    window: Option<Window>,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut projection = Projection::new(WakeupRow::TABLE);
    let [ts, tid, prio, target, cpu, waker] =
        ["ts", "tid", "prio", "target_cpu", "cpu", "waker_tid"].map(|name| projection.need(name));
    let [kind, comm, context] = ["kind", "comm", "context"].map(|name| projection.need(name));
    let mut cpus = Cpus::default();
    let (mut count, mut failed) = (0, None);
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, tid, prio) = (ts.ints(batch)?, tid.ints(batch)?, prio.ints(batch)?);
        let (target, cpu, waker) = (target.ints(batch)?, cpu.ints(batch)?, waker.ints(batch)?);
        let (kind, comm) = (kind.texts(batch)?, comm.texts(batch)?);
        let context = context.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let at = ts.at(row);
            if window.is_some_and(|window| !window.contains(at)) {
                continue;
            }
            let woken = SchedWakeup {
                comm: comm.get(row).map(str::to_owned),
                pid: tid.get(row).map(|tid| tid as i32),
                prio: prio.get(row).map(|prio| prio as i32),
                success: Some(1),
                target_cpu: target.get(row).map(|cpu| cpu as i32),
            };
            let mut event = FtraceEvent {
                timestamp: Some(at as u64),
                pid: waker.get(row).map(|tid| tid as u32),
                common_flags: match context.get(row) {
                    Some("irq" | "timer") => Some(IN_HARDIRQ),
                    Some("softirq") => Some(IN_SOFTIRQ),
                    _ => None,
                },
                ..FtraceEvent::default()
            };
            match kind.get(row) {
                Some("wakeup_new") => event.sched_wakeup_new = Some(woken),
                Some("wakeup") => event.sched_wakeup = Some(woken),
                _ => event.sched_waking = Some(woken),
            }
            count += 1;
            if let Err(error) = cpus.push(writer, cpu.get(row).unwrap_or(0), event) {
                failed = Some(error);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    cpus.flush(writer)?;
    Ok(count)
}
