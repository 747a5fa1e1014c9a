//! Threads that wait for several descriptors at once on the way to the culprit.

use whyslow_model::Ns;

use super::{Next, Task, Walker};
use crate::blame_target::{BlameTarget, Object, Reason};
use crate::classify::{Sleep, classify, follow};
use crate::middlemen::{self, Nested};
use crate::peers;
use crate::report::Grade;
use crate::window_slice::{Segment, State, Utid};

/// Maximum number of wakeups of an event loop by its clients that are skipped.
const CLIENTS_MAX: usize = 64;

impl<'m> Walker<'m> {
    /// What an event loop waited for on behalf of the request that it is followed for.
    pub(super) fn nested(
        &self,
        task: &Task,
        segment: &Segment,
        range: (Ns, Ns),
    ) -> Vec<Nested<'m>> {
        match task.request.filter(|_| task.hop.is_some()) {
            Some(request) if middlemen::waits_for_any(self.slice, segment) => {
                middlemen::nested(self.slice, (request, task.utid), range)
            }
            _ => Vec::new(),
        }
    }

    /// A server waited for another one.
    pub(super) fn served(&mut self, task: &Task, segment: &Segment, piece: &Nested<'_>) {
        let range = (piece.begin, piece.end);
        let peer = piece.request.peer.as_deref();
        let object = peer.and_then(|peer| self.slice.interner.find(peer));
        match piece.turn {
            Some(turn) => {
                let target = BlameTarget::Thread(turn.utid);
                let reason = Reason::new("local_ipc", target, Grade::B);
                let next = Next {
                    utid: turn.utid,
                    since: piece.request.begin,
                    request: piece.request.server,
                };
                self.hop(task, range, next, reason.about(object.map(Object::Peer)));
            }
            None => match object.filter(|peer| !peers::is_own(self.slice, *peer)) {
                Some(peer) => {
                    let reason = Reason::new("network_remote", BlameTarget::Peer(peer), Grade::B);
                    self.interval(task, range, reason.about(Some(Object::Peer(peer))));
                }
                None => self.slept(task, segment, range),
            },
        }
    }

    /// The cause of a sleep. What ends the sleep of an event loop may have been for others: messages
    /// of its clients are not what it waits for while it works for one of them.
    pub(super) fn classified(&self, task: &Task, segment: &Segment) -> Sleep {
        let slice = self.slice;
        let found = classify(slice, self.attribution, segment);
        let is_by_client = |found: &Sleep, at: Ns| {
            let Sleep::For { reason, pieces } = found else {
                return false;
            };
            let [piece] = pieces.as_slice() else {
                return false;
            };
            reason.mechanism == "local_ipc"
                && slice
                    .call_at(piece.utid, at)
                    .is_some_and(|call| peers::is_client(slice, task.utid, call))
        };
        let is_loop = task.hop.is_some() && middlemen::waits_for_any(slice, segment);
        if !is_loop || !is_by_client(&found, segment.end) {
            return found;
        }
        let later = slice.states(task.utid, (segment.end, task.end)).iter();
        let later = later
            .filter(|next| next.state == State::Sleeping && next.end <= task.end)
            .filter(|next| middlemen::waits_for_any(slice, next));
        for next in later.take(CLIENTS_MAX) {
            let by = classify(slice, self.attribution, next);
            if is_by_client(&by, next.end) {
                continue;
            }
            if let Sleep::For { reason, .. } = by
                && let BlameTarget::Thread(waker) = reason.target
            {
                let grade = reason.grade.min(Grade::B);
                return follow(segment, waker, Reason { grade, ..reason });
            }
            break;
        }
        found
    }

    /// Whether a thread that seems idle could not begin with the work, as it waited for the rest of
    /// another client's request, or for something else than requests.
    pub(super) fn is_occupied(&self, task: &Task, segment: &Segment) -> bool {
        let slice = self.slice;
        let Some(hop) = task.hop else { return false };
        let table = &slice.thread_table;
        if let Some(client) = middlemen::client_of_rest(slice, segment) {
            let is_of = |utid: Utid| table.upid(utid) == Some(client);
            let mut path =
                std::iter::successors(Some(hop), |hop| self.walk.steps[*hop as usize].from);
            return !is_of(self.root)
                && !path.any(|hop| is_of(self.walk.steps[hop as usize].waiter));
        }
        let step = &self.walk.steps[hop as usize];
        let sent = (step.waiter, task.since);
        let is_message = step.reason.mechanism == "local_ipc";
        if !is_message || !middlemen::has_slept_through(slice, segment, sent) {
            return false;
        }
        // The message itself may have arrived late.
        let is_new = |utid: Utid| utid != self.root && !self.is_on_path(task.hop, utid);
        match classify(slice, self.attribution, segment) {
            Sleep::For { pieces, .. } => pieces.iter().all(|piece| is_new(piece.utid)),
            _ => false,
        }
    }

    /// The process whose message ended an idle wait, and only then the wait for the idle thread: a
    /// thread that waits for a message of its client keeps its locks and transactions meanwhile. A
    /// reply does not depend on other messages, and a sender that itself waits for work is no better
    /// answer.
    pub(super) fn late_message(
        &self,
        task: &Task,
        segment: &Segment,
        (begin, end): (Ns, Ns),
    ) -> Option<(Next, Reason)> {
        let slice = self.slice;
        let is_message = |mechanism: &str| matches!(mechanism, "local_ipc" | "pipe_wait");
        let step = &self.walk.steps[task.hop? as usize];
        if is_message(step.reason.mechanism) {
            return None;
        }
        let Sleep::For { reason, pieces } = classify(slice, self.attribution, segment) else {
            return None;
        };
        let [piece] = pieces.as_slice() else {
            return None;
        };
        let sender = piece.utid;
        if !is_message(reason.mechanism)
            || slice.thread_table.same_process(sender, task.utid)
            || sender == self.root
            || self.is_on_path(task.hop, sender)
            || !slice.has_rows_of(sender)
        {
            return None;
        }
        let states = slice.states(sender, (begin, end)).iter();
        let idle: Ns = states
            .filter(|state| state.state == State::Sleeping)
            .filter(|state| middlemen::is_idle_wait(slice, state))
            .map(|state| state.end.min(end) - state.begin.max(begin))
            .sum();
        if 2 * idle >= end - begin {
            return None;
        }
        let next = Next {
            utid: sender,
            since: Ns::MIN,
            request: None,
        };
        let grade = reason.grade.min(Grade::B);
        let target = BlameTarget::Thread(sender);
        Some((
            next,
            Reason {
                target,
                grade,
                ..reason
            },
        ))
    }

    /// The served request that a sleeping thread's own request is for the thread that it waits for.
    pub(super) fn request_of(&self, task: &Task, segment: &Segment, next: Utid) -> Option<i64> {
        let slice = self.slice;
        if slice.thread_table.same_process(task.utid, next) {
            return task.request;
        }
        let call = slice.call_at(task.utid, segment.begin)?;
        let peer = peers::peer_of(slice, call).filter(|_| call.path.is_some());
        let peer = peer.map(|peer| slice.text(peer));
        let sent = slice.connections.sent_by(task.utid, peer, segment.begin)?;
        sent.server
    }
}
