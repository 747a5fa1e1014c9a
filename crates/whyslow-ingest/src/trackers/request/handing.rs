//! How a request goes from thread to thread: see [`super::hands`].

use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, stat};

use super::super::identity::{Here, Output, ThreadRef};
use super::super::syscall::SyscallTracker;
use super::RequestTracker;
use super::connection::{EDGES_MAX, Key, Touch};
use super::deed::{Channel, Doing, Place};
use super::hands::{Edge, Way};

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
            Some(Doing::Poll) => self.hands.of(wakee).woken = Some(here.ts),
            Some(Doing::FutexWait(owner, address)) => {
                let Some(waker) = here.thread.filter(|_| !here.interrupted) else {
                    return;
                };
                if let Some(Doing::FutexWake(by, addresses)) = syscall.doing(&waker)
                    && by == owner
                    && addresses.contains(&Some(address))
                    && let Some(key) = self.hands.current(&waker)
                {
                    let from = self.hands.touch(&waker, here.ts);
                    self.hand_over(key, from, (wakee, here.ts), Way::Futex, out);
                }
            }
            _ => {}
        }
    }

    /// Something is written into a channel.
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
        let key = self.hands.current(thread);
        let key = key.filter(|key| self.is_unanswered(*key));
        let touch = self.hands.touch(thread, ts);
        if self.hands.put(channel, key.map(|key| (key, touch)), bytes) {
            out.anomalies.count(&stat::MAP_LIMIT, ts);
        }
    }

    /// Something was read from a channel.
    pub(super) fn took<S: EmitAll>(
        &mut self,
        channel: Channel,
        bytes: i64,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        self.hands.of(thread).woken = None;
        if bytes == 0 {
            return;
        }
        for unread in self.hands.take(channel, bytes) {
            if let Some((key, from)) = unread.of {
                self.hand_over(key, from, (thread, ts), Way::of(channel), out);
            }
        }
    }

    /// A thread hands a request to another one, if that is idle or had it before.
    pub(super) fn hand_over<S: EmitAll>(
        &mut self,
        key: Key,
        from: Touch,
        (to, ts): (&ThreadRef, Ns),
        way: Way,
        out: &mut Output<'_, S>,
    ) {
        let giver = from.thread;
        let had = self.hands.current(to);
        if giver.utid == to.utid || !self.is_unanswered(key) {
            return;
        }
        if had != Some(key) && !self.is_idle(to) {
            return;
        }
        let is_again = |edge: &Edge| {
            edge.to.thread.utid == to.utid
                && edge.from.thread.utid == giver.utid
                && had == Some(key)
        };
        let Some(open) = self.connections.get_mut(&key.socket) else {
            return;
        };
        let Some(open) = &mut open.open else { return };
        // Woken twice, of which the first counts.
        if open.edges.last().is_some_and(is_again) {
            return;
        }
        if open.edges.len() >= EDGES_MAX {
            return out.anomalies.count(&stat::REQUEST_TURNS_LIMIT, ts);
        }
        let to = self.hands.take_up(to, key, ts);
        self.hands.of(&to.thread).free = ts;
        open.edges.push(Edge { ts, from, to, way });
        let hand = self.hands.of(&giver);
        hand.gave |= hand.current == Some(key);
    }

    /// Whether a thread has nothing to do, as far as is known.
    pub(super) fn is_idle(&mut self, thread: &ThreadRef) -> bool {
        let hand = *self.hands.of(thread);
        hand.gave || hand.current.is_none_or(|key| !self.is_unanswered(key))
    }
}
