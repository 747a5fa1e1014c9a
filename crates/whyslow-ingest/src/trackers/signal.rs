//! Signals, from generation to delivery.
//!
//! A process has at most one pending signal of each kind, so a signal is identified by process and
//! number until it is delivered to some thread. A signal that terminates a process is delivered to
//! each of its threads; the first one counts.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Signal, SignalAction};
use whyslow_model::tables::{EmitAll, SignalRow};
use whyslow_model::{Ns, stat};

use super::identity::{Here, Output, ThreadRef};

/// Maximum number of undelivered signals; above it, their ends are dropped.
const PENDING_MAX: usize = 1 << 14;

#[derive(Debug, Clone, Copy)]
struct Sent {
    id: i64,
    ts: Ns,
    signal: Signal,
    target: Option<ThreadRef>,
    sender: Option<ThreadRef>,
}

#[derive(Debug, Default)]
pub(super) struct SignalTracker {
    /// By process and signal number.
    pending: FxHashMap<(i32, i32), Sent>,
    next_id: i64,
}

impl SignalTracker {
    pub(super) fn sent<S: EmitAll>(
        &mut self,
        signal: Signal,
        (here, target): (&Here, Option<ThreadRef>),
        out: &mut Output<'_, S>,
    ) {
        let sent = Sent {
            id: self.next_id,
            ts: here.ts,
            signal,
            target,
            sender: here.thread.filter(|_| !here.interrupted),
        };
        self.next_id += 1;
        if signal.action() == SignalAction::Continue {
            return put(&sent, Some(here.ts), out);
        }
        let key = (signal.pid, signal.number);
        // If one was pending already, that one is delivered later.
        let is_another = signal.result == 0 || signal.result == 4;
        if !is_another {
            return put(&sent, None, out);
        }
        if let Some(before) = self.pending.insert(key, sent) {
            put(&before, None, out);
        }
        if self.pending.len() > PENDING_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, here.ts);
            self.finish(out);
        }
    }

    pub(super) fn delivered<S: EmitAll>(
        &mut self,
        signal: Signal,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let mut key = (signal.pid, signal.number);
        // The kernel terminates a process with this signal, whichever was sent.
        if signal.number == Signal::KILL && !self.pending.contains_key(&key) {
            let of_it = self.pending.iter().filter(|((pid, _), sent)| {
                *pid == signal.pid && sent.signal.action() == SignalAction::End
            });
            if let Some((first, _)) = of_it.min_by_key(|(_, sent)| sent.id) {
                key = *first;
            }
        }
        if let Some(sent) = self.pending.remove(&key) {
            put(&sent, Some(here.ts), out);
        }
    }

    /// The process ended without delivery.
    pub(super) fn ended<S: EmitAll>(&mut self, pid: i32, out: &mut Output<'_, S>) {
        if self.pending.is_empty() {
            return;
        }
        let of_it = self.pending.keys().filter(|(of, _)| *of == pid);
        let mut of_it: Vec<(i32, i32)> = of_it.copied().collect();
        of_it.sort_unstable();
        for key in of_it {
            if let Some(sent) = self.pending.remove(&key) {
                put(&sent, None, out);
            }
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let mut sent: Vec<Sent> = self.pending.drain().map(|(_, sent)| sent).collect();
        sent.sort_unstable_by_key(|sent| sent.id);
        for sent in &sent {
            put(sent, None, out);
        }
    }
}

fn put<S: EmitAll>(sent: &Sent, end: Option<Ns>, out: &mut Output<'_, S>) {
    let signal = &sent.signal;
    let name = match signal.name() {
        Some(name) => out.symbols.intern_static(name),
        None => out.symbols.intern(&signal.number.to_string()),
    };
    let (target, sender) = (sent.target, sent.sender);
    let row = SignalRow {
        id: sent.id,
        ts: sent.ts,
        dur: end.map(|end| end.saturating_sub(sent.ts)),
        ts_end: end,
        signal: name,
        action: out.symbols.intern_static(signal.action().name()),
        origin: out.symbols.intern_static(signal.origin()),
        result: out.symbols.intern_static(match signal.action() {
            // It took effect, although nothing is delivered.
            SignalAction::Continue => "sent",
            _ => signal.result_name(),
        }),
        utid: target.map(|thread| thread.utid),
        upid: target.and_then(|thread| thread.upid),
        tid: signal.tid,
        pid: signal.pid,
        comm: target.and_then(|thread| thread.comm),
        sender_utid: sender.map(|thread| thread.utid),
        sender_tid: sender.map(|thread| thread.tid),
        sender_pid: sender.and_then(|thread| thread.pid),
        sender_comm: sender.and_then(|thread| thread.comm),
    };
    out.sink.emit(row);
}
