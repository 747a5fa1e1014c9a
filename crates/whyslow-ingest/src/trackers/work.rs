//! Kernel work that threads wait for, and waits that the kernel imposes, from start to end.
//!
//! One thread does a piece of work from start to end, so both are matched by thread and kind. Dirty
//! throttling is reported only at its start: the thread sleeps next, and the throttling ends when
//! it runs again. If the switch to it was not seen, that is when it is found running, at the latest
//! at the return of the call in which it was throttled.
//!
//! Rows from before a state dump wait for the dump, because it contains the names of devices.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, Event, PrevState, Work, WorkKind, WorkPhase};
use whyslow_model::tables::{EmitAll, KernelWorkRow};
use whyslow_model::{Ns, Sym, Symbols, stat};

use super::block::BlockTracker;
use super::identity::{Here, Output, ThreadRef};

/// Maximum number of rows that wait for device names.
const WAITING_MAX: usize = 1 << 12;

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    work: Work<'static>,
    reason: Option<Sym>,
    thread: Option<ThreadRef>,
    cpu: Option<i32>,
    /// For a commit: start of each of its phases.
    phases: [Option<Ns>; 3],
    /// The thread has been off-CPU since.
    has_slept: bool,
}

/// Owner of the work: a thread, or a CPU if the thread is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Thread(i32),
    Cpu(Option<i32>),
}

#[derive(Debug, Default)]
pub(super) struct WorkTracker {
    open: FxHashMap<(Owner, u8), Open>,
    waiting: Vec<KernelWorkRow>,
    is_dumped: bool,
    next_id: i64,
}

impl WorkTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        work: Work<'_>,
        here: &Here,
        block: &BlockTracker,
        out: &mut Output<'_, S>,
    ) {
        let owner = match here.thread {
            Some(thread) => Owner::Thread(thread.utid),
            None => Owner::Cpu(here.cpu),
        };
        let key = (owner, work.kind as u8);
        match work.phase {
            WorkPhase::Begin => {
                let open = self.begin(work, here, out.symbols);
                if let Some(before) = self.open.insert(key, open) {
                    if work.kind != WorkKind::DirtyThrottle {
                        out.anomalies.count(&stat::WORK_NESTED, here.ts);
                    }
                    let end = before.has_slept.then_some(here.ts);
                    self.put(&before, end, None, block, out);
                }
            }
            WorkPhase::End => match self.open.remove(&key) {
                Some(open) => {
                    let written = match (open.work.pages, work.pages) {
                        (Some(before), Some(after)) => Some(before.saturating_sub(after)),
                        _ => None,
                    };
                    self.put(&open, Some(here.ts), written, block, out);
                }
                None => out.anomalies.count(&stat::WORK_END_WITHOUT_BEGIN, here.ts),
            },
            WorkPhase::Locking | WorkPhase::Flushing | WorkPhase::Logging => {
                let place = work.phase as usize - WorkPhase::Locking as usize;
                if let Some(open) = self.open.get_mut(&key) {
                    open.phases[place] = Some(here.ts);
                }
            }
            WorkPhase::Done => {
                let mut open = self.begin(work, here, out.symbols);
                open.ts = here.ts.saturating_sub(work.dur.unwrap_or(0));
                self.put(&open, Some(here.ts), None, block, out);
            }
        }
    }

    fn begin(&mut self, work: Work<'_>, here: &Here, symbols: &mut Symbols) -> Open {
        let id = self.next_id;
        self.next_id += 1;
        Open {
            id,
            ts: here.ts,
            reason: work.reason.map(|reason| symbols.intern(reason)),
            work: Work {
                reason: None,
                ..work
            },
            thread: here.thread,
            cpu: here.cpu,
            phases: [None; 3],
            has_slept: false,
        }
    }

    /// `next` runs instead of the thread in `here`.
    pub(super) fn switch<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        next: Option<ThreadRef>,
        block: &BlockTracker,
        out: &mut Output<'_, S>,
    ) {
        if self.open.is_empty() {
            return;
        }
        let key = |thread: ThreadRef| (Owner::Thread(thread.utid), WorkKind::DirtyThrottle as u8);
        let is_asleep = !matches!(
            event.body,
            Body::SchedSwitch {
                prev_state: PrevState::Runnable { .. },
                ..
            }
        );
        if let Some(thread) = here.thread
            && let Some(open) = self.open.get_mut(&key(thread))
        {
            if open.has_slept {
                self.runs(here, block, out);
            } else {
                open.has_slept = is_asleep;
            }
        }
        let Some(next) = next else { return };
        if self.open.get(&key(next)).is_some_and(|open| open.has_slept)
            && let Some(open) = self.open.remove(&key(next))
        {
            self.put(&open, Some(event.ts), None, block, out);
        }
    }

    /// The thread in `here` is running, so it is no longer throttled, whether or not the end was
    /// seen.
    pub(super) fn runs<S: EmitAll>(
        &mut self,
        here: &Here,
        block: &BlockTracker,
        out: &mut Output<'_, S>,
    ) {
        let Some(thread) = here.thread.filter(|_| !self.open.is_empty()) else {
            return;
        };
        let key = (Owner::Thread(thread.utid), WorkKind::DirtyThrottle as u8);
        if let Some(open) = self.open.remove(&key) {
            self.put(&open, Some(here.ts), None, block, out);
        }
    }

    /// The thread ended; its work has no end.
    pub(super) fn gone<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        block: &BlockTracker,
        out: &mut Output<'_, S>,
    ) {
        for kind in WorkKind::ALL {
            if let Some(open) = self.open.remove(&(Owner::Thread(thread.utid), kind as u8)) {
                self.put(&open, None, None, block, out);
            }
        }
    }

    /// The state dump has reported the names of all devices.
    pub(super) fn dumped<S: EmitAll>(&mut self, block: &BlockTracker, out: &mut Output<'_, S>) {
        self.is_dumped = true;
        for mut row in self.waiting.drain(..) {
            row.dev_name = row.dev.map(|dev| block.device_name(dev, out.symbols));
            out.sink.emit(row);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, block: &BlockTracker, out: &mut Output<'_, S>) {
        self.dumped(block, out);
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            self.put(open, None, None, block, out);
        }
    }

    fn put<S: EmitAll>(
        &mut self,
        open: &Open,
        end: Option<Ns>,
        pages: Option<i64>,
        block: &BlockTracker,
        out: &mut Output<'_, S>,
    ) {
        let [locking, flushing, logging] = open.phases;
        let between = |begin: Option<Ns>, end: Option<Ns>| Some(end?.saturating_sub(begin?));
        self.waiting.push(KernelWorkRow {
            id: open.id,
            ts: open.ts,
            dur: end.map(|end| end.saturating_sub(open.ts)),
            ts_end: end,
            kind: out.symbols.intern_static(open.work.kind.name()),
            dev: open.work.dev,
            dev_name: None,
            reason: open.reason,
            transaction: open.work.transaction,
            pages,
            locking_ns: between(locking, flushing),
            flushing_ns: between(flushing, logging),
            logging_ns: between(logging, end),
            utid: open.thread.map(|thread| thread.utid),
            upid: open.thread.and_then(|thread| thread.upid),
            tid: open.thread.map(|thread| thread.tid),
            pid: open.thread.and_then(|thread| thread.pid),
            comm: open.thread.and_then(|thread| thread.comm),
            cpu: open.cpu,
        });
        if self.is_dumped || self.waiting.len() >= WAITING_MAX {
            self.dumped(block, out);
        }
    }
}
