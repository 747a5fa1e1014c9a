//! Waits for a connection: in `connect` itself, or in a call that waits for descriptors after a
//! `connect` that did not block.
//!
//! The kernel of a listener completes connections by itself. It drops connection requests when the
//! listen queue is full, and the client's kernel retransmits them after a second or more: the
//! thread that accepts connections may be ready again long before that.

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Reason, Step};
use crate::middlemen::{is_idle_wait, waits_for_any};
use crate::peers::socket_calls::{is_checked, is_receiving, is_same, is_sending};
use crate::report::Grade;
use crate::window_slice::{Call, Segment, TextId, WindowSlice};

/// Error of a `connect` that goes on without the caller.
const EINPROGRESS: i32 = 115;
/// Longest time between such a call and the wait for it, and between that and the next use.
const NEAR_NS: Ns = 50_000_000;

/// Whether a sleep in a call is a wait for a connection.
pub(crate) fn connects(slice: &WindowSlice, sleep: &Segment, call: &Call) -> bool {
    slice.text(call.name) == "connect" || pending(slice, sleep, call).is_some()
}

/// The address that a thread waits to be connected to while it may wait for several descriptors.
pub(crate) fn pending(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<TextId> {
    if call.path.is_some() || !waits_for_any(slice, sleep) {
        return None;
    }
    let before = slice.calls(call.utid, (call.begin - NEAR_NS, call.begin + 1));
    let mut before = before.iter().rev().filter(|one| one.id != call.id);
    let last = before.find(|one| is_sending(slice, one) || is_receiving(slice, one))?;
    let is_pending = slice.text(last.name) == "connect" && last.errno == Some(EINPROGRESS);
    let peer = last.path.filter(|_| is_pending)?;
    let after = slice.calls(call.utid, (call.end, call.end + NEAR_NS));
    let next = after.iter().find(|next| {
        let uses = is_sending(slice, next) || is_receiving(slice, next) || is_checked(slice, next);
        next.begin >= call.end && uses
    });
    match next {
        Some(next) => next.path.is_some_and(|path| is_same(slice, path, peer)),
        // An event loop may have waited for any other of its descriptors.
        None => !slice.text(call.name).starts_with("epoll"),
    }
    .then_some(peer)
}

/// The rest of a wait for a connection after the thread that accepts connections was ready for more:
/// the connection request that it had no room for is retransmitted only later.
pub(crate) fn not_accepted(
    slice: &WindowSlice,
    step: Option<&Step>,
    segment: &Segment,
) -> Option<Reason> {
    let step = step.filter(|step| step.reason.mechanism == "local_ipc")?;
    let range = (step.begin, step.end);
    let waits = slice.states(step.waiter, range).last()?;
    let call = slice.call_at(step.waiter, waits.begin)?;
    if !connects(slice, waits, call) || !is_idle_wait(slice, segment) {
        return None;
    }
    let peer = pending(slice, waits, call).or(call.path)?;
    let upid = slice.thread_table.upid(step.waiter)?;
    if !slice.connections.has_loss(upid, slice.text(peer), range) {
        return None;
    }
    let acceptor = BlameTarget::Thread(segment.utid);
    let reason = Reason::new("network_retransmit", acceptor, Grade::B);
    Some(reason.about(Some(Object::Peer(peer))))
}
