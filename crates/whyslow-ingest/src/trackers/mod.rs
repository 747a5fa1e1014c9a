//! Turns ordered events into rows: one state machine per topic, all fed by [`Trackers::event`].
//!
//! Identity comes first: the thread running on the CPU of the event (`sched`), with its id, name
//! and process (`process`). The other trackers receive the event together with this ([`Here`]) and
//! with the changes that it made to threads ([`Change`]).

mod anomalies;
mod block;
mod callsites;
mod cause;
mod counter;
mod fd;
mod file;
mod fill;
mod function;
mod identity;
mod irq;
mod last_cpu;
mod lookup;
mod loss_ranges;
mod losses;
mod machine;
mod mapping;
mod marker;
mod meter;
mod net;
mod object;
mod packet;
mod page;
mod pairing;
mod process;
mod query;
mod reclaim;
mod request;
mod sampled;
mod sched;
mod signal;
mod socket;
mod stack;
mod syscall;
mod tcp;
#[cfg(test)]
mod tests;
mod thread_state;
mod threads;
mod usdt;
mod wakeup;
mod work;
mod work_item;

use whyslow_model::event::{Body, Event, Hidden, Interrupt, Loss, StateProcess};
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Symbols};

use crate::importers::requests::Request;

pub use anomalies::{Anomalies, Anomaly};
pub use identity::{Change, Here, Output, ProcessRef, Running, ThreadRef};
pub use process::Processes;

use block::BlockTracker;
use cause::CauseTracker;
use counter::CounterTracker;
use fill::FillTracker;
use function::FunctionTracker;
use irq::IrqTracker;
use lookup::LookupTracker;
use machine::MachineTracker;
use marker::MarkerTracker;
use meter::{Inside, Mode};
use net::NetTracker;
use page::PageTracker;
use query::QueryTracker;
use reclaim::ReclaimTracker;
use request::RequestTracker;
pub use sampled::{RUNTIME_TID, Sampled, Source};
use sampled::{SampledTracker, Shared};
use sched::SchedTracker;
use signal::SignalTracker;
use stack::StackTracker;
use syscall::SyscallTracker;
use tcp::TcpTracker;
use usdt::UsdtTracker;
use wakeup::WakeupTracker;
use work::WorkTracker;
use work_item::WorkItemTracker;

/// All trackers of one machine.
#[derive(Debug)]
pub struct Trackers {
    anomalies: Anomalies,
    topics: Topics,
}

impl Trackers {
    /// Creates trackers without any state. All rows have to be written with the same `symbols`.
    pub fn new(symbols: &mut Symbols) -> Self {
        Self {
            anomalies: Anomalies::default(),
            topics: Topics::new(symbols),
        }
    }

    /// Announces full thread names given by runtimes; the kernel truncates names.
    pub fn expect_names(&mut self, names: impl Iterator<Item = (i32, Box<str>)>) {
        self.topics.processes.expect_names(names);
    }

    /// The process that records, as reported by itself: it is marked as the tracer.
    pub fn expect_recorder(&mut self, pid: i32) {
        self.topics.processes.expect_recorder(pid);
    }

    /// To be called first. `has_both`: request logs and recordings; `has_traces`: related logs.
    pub fn expect_requests(&mut self, has_both: bool, has_traces: bool) {
        self.topics.request.expect(has_both, has_traces);
    }

    /// Anomalies counted so far.
    pub fn anomalies(&self) -> &Anomalies {
        &self.anomalies
    }

    /// Processes the next event in time order.
    pub fn event<S: EmitAll>(&mut self, event: &Event<'_>, symbols: &mut Symbols, sink: &mut S) {
        let anomalies = &mut self.anomalies;
        self.topics.event(
            event,
            &mut Output {
                symbols,
                anomalies,
                sink,
            },
        );
    }

    /// Processes the next item of a profile.
    #[inline]
    pub fn sampled<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        item: &Sampled<'_>,
        symbols: &mut Symbols,
        sink: &mut S,
    ) {
        let anomalies = &mut self.anomalies;
        let out = &mut Output {
            symbols,
            anomalies,
            sink,
        };
        self.topics.sampled(source, item, out);
    }

    /// Processes a request that a source reports as a whole.
    pub fn request<S: EmitAll>(&mut self, request: &Request, symbols: &mut Symbols, sink: &mut S) {
        let anomalies = &mut self.anomalies;
        let out = &mut Output {
            symbols,
            anomalies,
            sink,
        };
        self.topics.request.imported(request, out);
    }

    /// Processes a time range with losses; to be called before the first event after the range.
    pub fn loss<S: EmitAll>(&mut self, loss: &Loss<'_>, symbols: &mut Symbols, sink: &mut S) {
        let anomalies = &mut self.anomalies;
        self.topics.loss(
            loss,
            &mut Output {
                symbols,
                anomalies,
                sink,
            },
        );
    }

    /// Writes open intervals at the end of the recording.
    pub fn finish<S: EmitAll>(&mut self, ts_end: Ns, symbols: &mut Symbols, sink: &mut S) {
        let anomalies = &mut self.anomalies;
        self.topics.finish(
            ts_end,
            &mut Output {
                symbols,
                anomalies,
                sink,
            },
        );
    }
}

#[derive(Debug)]
struct Topics {
    processes: Processes,
    sched: SchedTracker,
    irq: IrqTracker,
    inside: Inside,
    wakeup: WakeupTracker,
    net: NetTracker,
    tcp: TcpTracker,
    request: RequestTracker,
    signal: SignalTracker,
    page: PageTracker,
    fill: FillTracker,
    reclaim: ReclaimTracker,
    lookup: LookupTracker,
    query: QueryTracker,
    function: FunctionTracker,
    usdt: UsdtTracker,
    stack: StackTracker,
    sampled: SampledTracker,
    work: WorkTracker,
    work_item: WorkItemTracker,
    marker: MarkerTracker,
    machine: MachineTracker,
    counter: CounterTracker,
    syscall: SyscallTracker,
    block: BlockTracker,
    cause: CauseTracker,
}

impl Topics {
    fn new(symbols: &mut Symbols) -> Self {
        Self {
            processes: Processes::default(),
            sched: SchedTracker::new(symbols),
            irq: IrqTracker::new(symbols),
            inside: Inside::default(),
            wakeup: WakeupTracker::new(symbols),
            net: NetTracker::new(symbols),
            tcp: TcpTracker::default(),
            request: RequestTracker::default(),
            signal: SignalTracker::default(),
            page: PageTracker::default(),
            fill: FillTracker::default(),
            reclaim: ReclaimTracker::default(),
            lookup: LookupTracker::default(),
            query: QueryTracker::default(),
            function: FunctionTracker::default(),
            usdt: UsdtTracker::default(),
            stack: StackTracker::default(),
            sampled: SampledTracker::default(),
            work: WorkTracker::default(),
            work_item: WorkItemTracker::default(),
            marker: MarkerTracker::default(),
            machine: MachineTracker::default(),
            counter: CounterTracker::default(),
            syscall: SyscallTracker::default(),
            block: BlockTracker::default(),
            cause: CauseTracker::new(symbols),
        }
    }

    fn event<S: EmitAll>(&mut self, event: &Event<'_>, out: &mut Output<'_, S>) {
        let processes = &mut self.processes;
        let sched = &mut self.sched;
        processes.begin();
        let (cpu, lost) = sched.enter(event, processes, out);
        self.irq.enter(event, (cpu, lost), out);
        let mut reported = processes.running_by_event(event, out);
        if reported == Running::Unknown {
            reported = processes.running_by_context(&event.context, event.ts, out);
        }
        let running = sched.locate(cpu, reported, event, processes, out);
        let other = processes.event(event, running, out);
        let here = Here {
            ts: event.ts,
            cpu,
            thread: match running {
                Running::Thread(slot) => Some(processes.seen(slot, event.ts)),
                _ => None,
            },
            idle: running == Running::Idle,
            interrupted: match event.context.interrupt {
                Some(interrupt) => interrupt != Interrupt::None,
                None => self.irq.context(cpu).is_some(),
            },
            interrupt: event.context.interrupt,
        };
        let other = other.map(|slot| processes.by_slot(slot));
        self.change(0, &here, out);
        let changed = self.processes.changes().len();
        self.topic(event, &here, other, out);
        self.mode(event, &here, other);
        self.unseen_exec(event, running, out);
        let sched = &self.sched;
        self.processes
            .after(event, |slot| sched.is_running(slot), out);
        self.change(changed, &here, out);
    }

    #[inline]
    fn sampled<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        item: &Sampled<'_>,
        out: &mut Output<'_, S>,
    ) {
        self.processes.begin();
        let id = match item {
            Sampled::Point(..) => self.stack.take_id(),
            Sampled::Lock(..) => self.stack.take_lock_id(),
            Sampled::Gap(..) | Sampled::Runtime(..) => 0,
        };
        let shared = &mut Shared {
            processes: &mut self.processes,
            sites: &mut self.stack.sites,
        };
        match item {
            Sampled::Point(point, since) => {
                self.sampled.point(source, (point, *since, id), shared, out);
            }
            Sampled::Gap(gap, shift) => self.sampled.gap(source, (gap, *shift), shared, out),
            Sampled::Runtime(event, shift) => {
                self.sampled.runtime(source, (event, *shift), shared, out);
            }
            Sampled::Lock(wait, shift) => {
                self.sampled.lock(source, (wait, *shift, id), shared, out);
            }
        }
        if !self.processes.changes().is_empty() {
            let here = Here {
                ts: item.ts(),
                cpu: None,
                thread: None,
                idle: false,
                interrupted: false,
                interrupt: None,
            };
            self.change(0, &here, out);
        }
    }

    /// An exec known only from the return of its system call.
    fn unseen_exec<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        running: Running,
        out: &mut Output<'_, S>,
    ) {
        if let Some(filename) = self.syscall.take_unseen_exec() {
            let filename = out.symbols.get(filename).as_bytes().to_vec();
            let exec = Event {
                body: Body::Exec {
                    filename: &filename,
                    tid: None,
                    old_tid: None,
                },
                ..*event
            };
            self.processes.event(&exec, running, out);
        }
    }

    fn loss<S: EmitAll>(&mut self, loss: &Loss<'_>, out: &mut Output<'_, S>) {
        self.sched.loss(loss, out);
        let hidden = Hidden::of_stream(loss.stream);
        if hidden.may_be(Hidden::Calls) {
            self.syscall.lost(loss);
            self.request.lost(loss);
        }
        if hidden.may_be(Hidden::BlockIo) {
            self.block.lost(loss);
        }
    }

    fn finish<S: EmitAll>(&mut self, ts_end: Ns, out: &mut Output<'_, S>) {
        self.sched.finish(ts_end, &self.processes, out);
        self.irq.finish(out);
        self.page.finish(out);
        self.reclaim.finish(out);
        self.lookup.finish(out);
        self.query.finish(out);
        self.tcp.finish(out);
        self.request.finish(out);
        self.signal.finish(out);
        self.function.finish(ts_end, out);
        self.stack.finish(out);
        self.syscall.finish(out);
        self.work.finish(&self.block, out);
        self.work_item.finish(out);
        self.block.finish(out);
        self.processes.finish(out);
    }

    /// Applies changes of threads before any tracker sees the event; those of `after` come last.
    fn change<S: EmitAll>(&mut self, from: usize, here: &Here, out: &mut Output<'_, S>) {
        for change in &self.processes.changes()[from..] {
            self.sched.change(change, here, &self.processes, out);
            self.syscall.change(change, here, out);
            if let Change::Gone { thread } | Change::Execed { thread } = change {
                self.lookup.left(thread, out);
                self.function.left(thread, here.ts, out);
            }
            if let Change::Forked {
                parent: Some(parent),
                child,
            } = change
            {
                self.request.made((parent, child), here.ts, out);
            }
            if let Change::ProcessEnded { process } = change {
                self.signal.ended(process.pid, out);
                self.query.ended(process.upid, here.ts, out);
                self.request.ended(process.upid, here.ts, out);
            }
            if let Change::Gone { thread } = change {
                self.page.gone(thread);
                self.reclaim.gone(thread, out);
                self.stack.gone(thread, out);
                self.work.gone(thread, &self.block, out);
                self.inside.gone(thread);
                self.cause.gone(thread);
                self.query.gone(thread);
                self.request.gone(thread);
            }
        }
    }

    /// Updates the CPU's mode after an event that may change it.
    fn mode(&mut self, event: &Event<'_>, here: &Here, other: Option<ThreadRef>) {
        let running = match event.body {
            Body::SchedSwitch { .. } => other,
            Body::SyscallEnter { .. }
            | Body::SyscallExit { .. }
            | Body::Exit { .. }
            | Body::IrqEnter { .. }
            | Body::IrqExit { .. } => here.thread,
            _ => return,
        };
        let Some(cpu) = here.cpu else { return };
        let is_inside = |thread: ThreadRef| {
            self.inside.get(&thread) == Some(true) || self.processes.is_kernel(thread) == Some(true)
        };
        let mode = match self.irq.context(Some(cpu)) {
            Some((kind, _)) => Mode::of_handler(kind),
            None if running.is_some_and(is_inside) => Mode::System,
            None => Mode::User,
        };
        self.sched.meter(cpu).enter(mode);
    }

    /// Dispatches the event itself. `other` is the thread switched to, woken, created or dumped.
    fn topic<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        other: Option<ThreadRef>,
        out: &mut Output<'_, S>,
    ) {
        if let Some(cpu) = here.cpu {
            self.sched.meter(cpu).pass(event.ts);
        }
        self.syscall.event(event, here, other, &self.processes, out);
        for call in self.syscall.dns_calls() {
            self.query.call(&call, &self.lookup, out);
        }
        self.request.socket_ops(&mut self.syscall, here, out);
        let completed = self.block.apply(here, &event.body, out);
        self.cause.event(&event.body, here, completed, &self.irq);
        self.stack.event(&event.body, here, out);
        match event.body {
            Body::SchedSwitch { .. } => {
                self.sched.switch(event, here, other, out);
                self.work.switch(event, here, other, &self.block, out);
            }
            Body::SchedWakeup { .. } => {
                if let Some(wakee) = other {
                    let is_worker = self.processes.is_kernel(wakee) == Some(true);
                    self.request.woken(here, &wakee, &self.syscall, out);
                    let cause = self.cause.of_wakeup(here, &self.irq);
                    let states = &mut self.sched.states;
                    let seen = (&self.irq, &self.inside, states);
                    let is_spurious = self.wakeup.event(event, (here, wakee, cause), seen, out);
                    if is_worker && !is_spurious {
                        self.cause.woke_worker(&wakee, cause);
                    }
                }
            }
            Body::SyscallEnter { .. } | Body::SyscallExit { .. } | Body::Exit { .. } => {
                if let Body::SyscallExit { .. } = event.body {
                    self.work.runs(here, &self.block, out);
                }
                if let Some(thread) = here.thread {
                    let inside = !matches!(event.body, Body::SyscallExit { .. });
                    let before = self.inside.cross(&thread, inside);
                    if let (None, false, Some(cpu)) = (before, inside, here.cpu) {
                        self.sched.meter(cpu).was_inside();
                    }
                }
            }
            Body::SchedMigrate { to_cpu, .. } => {
                if let Some(thread) = other {
                    self.sched.last_cpus.migrated(&thread);
                    self.sched.states.migrate(&thread, to_cpu);
                }
            }
            Body::StateProcess(StateProcess {
                status: Some(status),
                cpu,
                ..
            }) => {
                if let Some(thread) = other {
                    self.sched.states.dumped(&thread, status, cpu, event.ts);
                }
            }
            Body::IrqEnter { .. }
            | Body::IrqExit { .. }
            | Body::SoftirqRaise { .. }
            | Body::IpiRaise { .. }
            | Body::StateIrq { .. } => self.irq.event(event, here, out),
            Body::Net { .. } | Body::NetFault { .. } | Body::StateNetInterface { .. } => {
                if let Some(arrival) = self.net.event(event, here, out) {
                    self.cause.arrived(arrival, here, &self.irq);
                    if let Body::Net { headers, bytes, .. } = event.body {
                        self.request.arrived(headers, bytes, here.ts);
                    }
                }
            }
            Body::PageAlloc { .. } | Body::PageFree { .. } | Body::Memory { .. } => {
                self.page.event(&event.body, here, out);
            }
            Body::CacheFill(_) | Body::StateBlockDevice { .. } => {
                self.page.event(&event.body, here, out);
                let about = (&self.processes, &self.syscall);
                self.fill.event(&event.body, here, about, out);
            }
            Body::ReclaimBegin { .. } | Body::ReclaimEnd { .. } => {
                self.reclaim.event(&event.body, here, out);
            }
            Body::StateCounters(ref counters) => {
                let processes = &self.processes;
                self.counter.event(counters, (here, processes), out);
            }
            Body::ReportedCounters(ref counters) => {
                let processes = &self.processes;
                self.counter.reported(counters, (here, processes), out);
            }
            Body::LookupBegin { .. } | Body::LookupEnd { .. } => {
                self.lookup.event(&event.body, here, out);
            }
            Body::FunctionBegin(_) | Body::FunctionEnd { .. } => {
                self.function.event(&event.body, here, out);
            }
            Body::Usdt(ref hit) => self.usdt.event(hit, here, out),
            Body::StateMount(_) | Body::StateResolverFile(_) | Body::StateDeviceLink { .. } => {
                self.machine.event(&event.body, here, out);
                let about = (&self.processes, &self.syscall);
                self.fill.event(&event.body, here, about, out);
            }
            Body::Work(work) => self.work.event(work, here, &self.block, out),
            Body::Signal(signal) => self.signal.sent(signal, (here, other), out),
            Body::SignalDelivered(signal) => self.signal.delivered(signal, here, out),
            Body::Tcp(ref change) => {
                self.tcp.event(change, here, out);
                self.request.tcp(change, here, &self.syscall, out);
            }
            Body::WorkItem(item) => {
                let context = (&self.irq, &self.inside);
                self.work_item.event(item, here, context, out);
            }
            Body::StateEnd => self.work.dumped(&self.block, out),
            Body::Marker { .. } => self.marker.event(&event.body, here, out),
            _ => {}
        }
    }
}
