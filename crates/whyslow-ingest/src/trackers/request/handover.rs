//! Handovers of requests between threads: see [`super::workers`].

use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, stat};

use super::super::identity::{Here, Output, ThreadRef};
use super::super::syscall::SyscallTracker;
use super::RequestTracker;
use super::connection::{EDGES_MAX, Key, Touch};
use super::socket_op::{Channel, Doing, Place};
use super::workers::{self, Edge, Way};

impl RequestTracker {
    /// A thread was woken.
    pub(in crate::trackers) fn woken<S: EmitAll>(
        &mut self,
        here: &Here,
        wakee: &ThreadRef,
        syscall: &SyscallTracker,
        out: &mut Output<'_, S>,
    ) {
        if self.connections.is_empty() {
            return;
        }
        match syscall.doing(wakee) {
            Some(Doing::Read(Place::Socket(socket))) => {
                if let Some(connection) = self.connections.get_mut(&socket) {
                    connection.arrived.get_or_insert(here.ts);
                }
            }
            Some(Doing::Poll) => self.workers.of(wakee).woken = Some(here.ts),
            Some(Doing::FutexWait(owner, address)) => {
                let Some(waker) = here.thread.filter(|_| !here.interrupted) else {
                    return;
                };
                let place = (owner, address);
                if let Some(Doing::FutexWake(by, addresses)) = syscall.doing(&waker)
                    && by == owner
                    && addresses.contains(&Some(address))
                {
                    self.workers.woke(&waker, place);
                    if let Some(key) = self.workers.current(&waker)
                        && let Some(since) = syscall.since(wakee)
                        && !self.workers.is_lock(place)
                    {
                        let from = self.workers.touch(&waker, here.ts);
                        let how = (Way::Futex, Some((since, place)));
                        self.hand_over(key, from, (wakee, here.ts), how, out);
                    }
                }
            }
            _ => {}
        }
    }

    /// A message is written to a channel.
    pub(super) fn put<S: EmitAll>(
        &mut self,
        channel: Channel,
        bytes: Option<i64>,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        if self.connections.is_empty() {
            return;
        }
        let key = self.workers.current(thread);
        let key = key.filter(|key| self.is_unanswered(*key));
        let touch = self.workers.touch(thread, ts);
        if self
            .workers
            .put(channel, key.map(|key| (key, touch)), bytes)
        {
            out.anomalies.count(&stat::MAP_LIMIT, ts);
        }
    }

    /// A message was read from a channel.
    pub(super) fn took<S: EmitAll>(
        &mut self,
        channel: Channel,
        bytes: i64,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        self.workers.of(thread).woken = None;
        if bytes == 0 {
            return;
        }
        for unread in self.workers.take(channel, bytes) {
            if let Some((key, from)) = unread.of {
                let how = (Way::of(channel), None);
                self.hand_over(key, from, (thread, ts), how, out);
            }
        }
    }

    /// A thread creates another one, which may work on the same request.
    pub(in crate::trackers) fn made<S: EmitAll>(
        &mut self,
        (parent, child): (&ThreadRef, &ThreadRef),
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        if self.connections.is_empty() {
            return;
        }
        if let Some(key) = self.workers.current(parent) {
            let from = self.workers.touch(parent, ts);
            self.hand_over(key, from, (child, ts), (Way::Clone, None), out);
        }
    }

    /// A thread hands a request over to another one, if that is idle or had it before. `how` is the
    /// way, with the start and the address of the receiver's wait.
    pub(super) fn hand_over<S: EmitAll>(
        &mut self,
        key: Key,
        from: Touch,
        (to, ts): (&ThreadRef, Ns),
        (way, waited): (Way, Option<(Ns, workers::Place)>),
        out: &mut Output<'_, S>,
    ) {
        let giver = from.thread;
        let had = self.workers.current(to);
        if giver.utid == to.utid || !self.is_unanswered(key) {
            return;
        }
        if had != Some(key) && !self.is_idle(to, waited.map(|(_, place)| place)) {
            return;
        }
        let is_again = |edge: &Edge| {
            edge.to.thread.utid == to.utid
                && edge.from.thread.utid == giver.utid
                && had == Some(key)
                && edge.waited == waited
        };
        let Some(open) = self.connections.get_mut(&key.socket) else {
            return;
        };
        let Some(open) = &mut open.open else { return };
        // Woken twice from one wait: the first wakeup counts.
        if open.edges.last().is_some_and(is_again) {
            return;
        }
        if open.edges.len() >= EDGES_MAX {
            return out.anomalies.count(&stat::REQUEST_TURNS_LIMIT, ts);
        }
        let to = self.workers.take_up(to, key, ts);
        let worker = self.workers.of(&to.thread);
        worker.free = ts;
        worker.got_at = waited.map(|(_, (_, address))| address);
        open.edges.push(Edge {
            ts,
            from,
            to,
            way,
            waited,
        });
        let worker = self.workers.of(&giver);
        worker.gave |= worker.current == Some(key);
    }

    /// Whether a thread is idle, as far as known. `place` is the address of its wait.
    pub(super) fn is_idle(&mut self, thread: &ThreadRef, place: Option<workers::Place>) -> bool {
        let is_back = place.is_some_and(|(_, address)| self.workers.is_back(thread, address));
        let worker = *self.workers.of(thread);
        // A thread that passes a request on may continue with it, and be woken for anything.
        let gave = worker.gave && place.is_none();
        is_back || gave || worker.current.is_none_or(|key| !self.is_unanswered(key))
    }
}
