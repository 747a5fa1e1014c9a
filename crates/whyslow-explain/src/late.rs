//! Packets of this host that arrive late: retransmitted after a loss, or delayed by the kernel of
//! the sender.

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Reason, Step};
use crate::middlemen::waits_for_any;
use crate::network::ARRIVES_NS;
use crate::peers;
use crate::report::Grade;
use crate::wait_kind::has_expired;
use crate::window_slice::{
    Call, Cause, Context, Packet, Segment, State, TextId, Utid, WindowSlice,
};

/// The kernel retransmits after at least this time (`TCP_RTO_MIN`), and delays acknowledgements for
/// less.
const RETRANSMIT_MIN_NS: Ns = 200_000_000;
/// It delays them for at least 40 ms (`TCP_DELACK_MIN`), in whole ticks.
const ACK_DELAYED_MIN_NS: Ns = 30_000_000;

/// Whether the packet of this machine that woke a thread was late: it was retransmitted after a
/// loss; or the kernel sent it, having delayed what a thread had sent before it waited for the
/// reply on the same connection. `step` leads to the thread.
pub(crate) fn sent_late(
    slice: &WindowSlice,
    step: Option<&Step>,
    segment: &Segment,
) -> Option<Reason> {
    let Cause::Packet(came) = segment.cause else {
        return unrecorded(slice, step?, segment);
    };
    let came = slice.packet(came)?;
    // The other end, as seen from the explained thread: either that thread received the packet,
    // or the thread that it waits for did.
    let peer = match step {
        None => came.source?,
        Some(_) => came.destination?,
    };
    let is_same =
        |packet: &Packet| (packet.source, packet.destination) == (came.source, came.destination);
    if is_resent(slice, segment, is_same) {
        return Some(retransmitted(peer));
    }
    if came.utid.is_some() {
        return None;
    }
    let step = step?;
    let waits = slice.states(step.waiter, (step.begin, step.end)).last()?;
    let Cause::Packet(answer) = waits.cause else {
        return None;
    };
    let answer = slice.packet(answer)?;
    let is_of_both = (came.source, came.destination) == (answer.destination, answer.source);
    is_of_both.then_some(delayed(step, Some(peer), Grade::B))
}

/// The same without packets: no thread sent anything when the packet arrived, and the thread at the
/// other end, which waits for this one, was asleep.
fn unrecorded(slice: &WindowSlice, step: &Step, segment: &Segment) -> Option<Reason> {
    let is_packet = segment.context == Context::Softirq
        && matches!(segment.cause, Cause::None | Cause::Received(_));
    let call = slice.call_at(segment.utid, segment.begin)?;
    if !is_packet || segment.state != State::Sleeping || has_expired(slice, call) {
        return None;
    }
    let is_any = waits_for_any(slice, segment);
    let peer = own_peer(slice, (segment, call), is_any)?;
    let sender = slice.thread_table.upid(step.waiter)?;
    let receiver = slice.thread_table.upid(segment.utid);
    // A listening socket may be known by the same address.
    let processes = slice.connections.processes_at(slice.text(peer)).iter();
    let mut others = processes.filter(|upid| receiver != Some(**upid));
    if others.next() != Some(&sender) || others.next().is_some() {
        return None;
    }
    // The wait of the sender, as its own calls name the connection.
    let waits = slice.call_at(step.waiter, segment.end)?;
    let other = peers::peer_of(slice, waits).or(Some(peer));
    let is_of = |packet: &Packet| {
        let ends = [packet.source, packet.destination];
        let mut ends = ends.iter().flatten();
        ends.any(|end| peers::is_same(slice, *end, peer))
    };
    if is_resent(slice, segment, is_of) {
        return Some(retransmitted(other?));
    }
    let wake = segment.wakeup.and_then(|wake| slice.wake(wake))?;
    // A kernel thread passes packets of all connections on. It is known what it passed on if only
    // the first of two messages had arrived.
    let by_kernel = wake
        .running
        .is_some_and(|running| slice.thread_table.is_kernel(running));
    let in_part = || other.is_some_and(|other| in_part(slice, (step.waiter, other), segment, peer));
    // An event loop waits for its other clients and servers as well.
    let is_loop = is_any && call.path.is_some();
    if (is_loop || (call.path.is_none() && by_kernel)) && !in_part() {
        return None;
    }
    // It waited from its last data to the end, and may have lost that if enough time passed.
    let asleep = slice
        .states(step.waiter, (segment.end, segment.end + 1))
        .last()
        .filter(|state| state.state == State::Sleeping && state.begin < segment.end)?;
    let sent = peers::last_sender(slice, &[sender], (segment.utid, segment.end));
    if sent.is_some() || peers::in_context(slice, segment, Some(call), Some(wake)).is_some() {
        return None;
    }
    let waited = segment.end - asleep.begin;
    let range = (segment.begin, segment.end);
    let is_lossy = |upid: Option<i32>, peer: Option<TextId>| {
        let both = upid.zip(peer);
        both.is_some_and(|(upid, peer)| slice.connections.has_loss(upid, slice.text(peer), range))
    };
    if waited < RETRANSMIT_MIN_NS {
        Some(delayed(step, other, Grade::B))
    } else if is_lossy(Some(sender), other) || is_lossy(receiver, Some(peer)) {
        Some(Reason {
            grade: Grade::B,
            ..retransmitted(other?)
        })
    } else {
        Some(delayed(step, other, Grade::C))
    }
}

/// The other end of the connection that the thread waits for, if it is on this host and certain.
fn own_peer(
    slice: &WindowSlice,
    (segment, call): (&Segment, &Call),
    is_any: bool,
) -> Option<TextId> {
    // The descriptor of `epoll_wait` may have a name, but is no connection.
    let peer = if is_any {
        peers::used_next(slice, segment, call)
    } else {
        let last = peers::peer_of_sleep(slice, segment, call);
        last.and_then(|(peer, is_certain)| is_certain.then_some(peer))
    };
    peer.filter(|peer| peers::is_own(slice, *peer))
}

/// Whether the sleeping thread had received the first of what the sender had sent on the connection
/// before its wait, and the rest came as late as a delayed acknowledgement: the kernel of the sender
/// holds a small segment back until the previous one is acknowledged (Nagle's algorithm).
fn in_part(
    slice: &WindowSlice,
    (sender, to): (Utid, TextId),
    segment: &Segment,
    from: TextId,
) -> bool {
    if segment.end - segment.begin < ACK_DELAYED_MIN_NS {
        return false;
    }
    let of = |call: &Call, peer: TextId| {
        let path = call.path;
        path.is_some_and(|path| peers::is_same(slice, path, peer))
    };
    let since = segment.begin - peers::USED_NS;
    let calls = slice.calls(sender, (since, segment.begin)).iter().rev();
    let mut sent = calls
        .filter(|call| of(call, to) && call.end <= segment.end)
        .take_while(|call| peers::is_sending_data(slice, call));
    let Some(first) = sent.next().and_then(|_| sent.last()) else {
        return false;
    };
    let mut received = slice
        .calls(segment.utid, (first.begin, segment.begin + 1))
        .iter();
    received.any(|call| {
        of(call, from)
            && peers::is_receiving(slice, call)
            && call.begin >= first.begin
            && call.ret.is_some_and(|bytes| bytes > 0)
    })
}

fn is_resent(slice: &WindowSlice, segment: &Segment, is_it: impl Fn(&Packet) -> bool) -> bool {
    let from = segment.begin.max(segment.end - ARRIVES_NS);
    let mut near = slice.resent.iter();
    near.any(|packet| from <= packet.ts && packet.ts < segment.end && is_it(packet))
}

fn retransmitted(peer: TextId) -> Reason {
    let reason = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::A);
    reason.about(Some(Object::Peer(peer)))
}

fn delayed(step: &Step, peer: Option<TextId>, grade: Grade) -> Reason {
    let reason = Reason::new("send_delayed", BlameTarget::Thread(step.waiter), grade);
    reason.about(peer.map(Object::Peer))
}
