//! The thread at the other end of a connection of this host.
//!
//! Over loopback and between network namespaces a packet usually arrives within the call that sent
//! it, so the running thread is its sender. Elsewhere (in ksoftirqd, or on a CPU that packets are
//! steered to) the sender is found by the addresses of the connection. A process of this host is
//! never another host, even if it is not known which one it is.

pub(crate) mod socket_calls;

use whyslow_model::Ns;

use self::socket_calls::{is_checked, is_sending, is_socket};
pub(crate) use self::socket_calls::{is_receiving, is_same, is_sending_data};
use crate::addresses::{is_loopback, plain, split};
use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::classify::sleep::{Sleep, follow};
use crate::connecting::{connects, pending};
use crate::middlemen::waits_for_any;
use crate::report::Grade;
use crate::wait_kind::{Wait, WaitKind};
use crate::window_slice::{Call, Segment, State, TextId, Utid, Wake, WindowSlice};

/// Maximum time between a call that sends and the arrival of its packet, if a kernel thread passes
/// it on.
const SENT_NS: Ns = 1_000_000;
/// Maximum time between the use of a connection and a wait for several of them.
pub(crate) const USED_NS: Ns = 50_000_000;

/// Where the sender of a packet is: the thread that ran when it arrived.
pub(crate) fn in_context(
    slice: &WindowSlice,
    sleep: &Segment,
    call: Option<&Call>,
    wake: Option<&Wake>,
) -> Option<(Utid, Reason)> {
    let wake = wake?;
    let ran_on = || {
        let on = slice.ran_on(wake.cpu?, (wake.ts, wake.ts + 1)).last();
        on.map(|segment| segment.utid)
    };
    let thread = wake.running.or_else(ran_on)?;
    let other = slice.call_at(thread, wake.ts)?;
    // Another connection than the one used last may have ended a wait for several.
    let last = call.and_then(|call| peer_of_sleep(slice, sleep, call));
    let certain = last.filter(|(_, is_certain)| *is_certain);
    let address = certain.map(|(address, _)| address);
    // The kernel itself replies to connection requests.
    let connects = call.is_some_and(|call| connects(slice, sleep, call))
        || last.is_some_and(|(peer, _)| opening(slice, sleep, peer).is_some());
    if thread == sleep.utid || connects {
        return None;
    }
    let is_other = is_elsewhere(slice, address, other)
        || address.is_some_and(|address| is_of_another(slice, (sleep, address), thread));
    let has_sent = is_sending(slice, other) && !is_other;
    if !has_sent && !makes_room(slice, (call, address), thread, other) {
        return None;
    }
    let peer = other.path.map(Object::Peer);
    let reason = Reason::new("local_ipc", BlameTarget::Thread(thread), Grade::B);
    Some((thread, reason.about(peer).by(Proof::Call(other.id))))
}

/// Whether a call sends on another connection than the one with this peer: packets over loopback
/// have both ends there.
fn is_elsewhere(slice: &WindowSlice, peer: Option<TextId>, call: &Call) -> bool {
    let loops = |address: TextId| {
        let address = plain(slice.text(address));
        split(&address).map(|(host, _)| is_loopback(host))
    };
    let (Some(one), Some(other)) = (peer.and_then(loops), call.path.and_then(loops)) else {
        return false;
    };
    one != other
}

/// Whether the other end of a connection is known to be of another process than that of a thread.
fn is_of_another(slice: &WindowSlice, (sleep, peer): (&Segment, TextId), thread: Utid) -> bool {
    let (table, connections) = (&slice.thread_table, &slice.connections);
    let range = (sleep.begin, sleep.end);
    let upid = table.upid(sleep.utid);
    let local = upid.and_then(|upid| connections.local_of(upid, slice.text(peer), range));
    let holders = local.map_or(&[][..], |local| connections.holders(local));
    let has = table
        .upid(thread)
        .is_some_and(|upid| holders.contains(&upid));
    !holders.is_empty() && !has
}

/// Whether a thread reads what the sleeping one waits to send: the kernel announces the room that it
/// makes within its call.
fn makes_room(
    slice: &WindowSlice,
    (call, peer): (Option<&Call>, Option<TextId>),
    reader: Utid,
    reading: &Call,
) -> bool {
    if !is_receiving(slice, reading) {
        return false;
    }
    let (Some(call), Some(peer)) = (call, peer) else {
        return false;
    };
    let peer = slice.text(peer);
    let connections = &slice.connections;
    let processes = processes_of(slice, call.utid, peer, (call.begin, call.end));
    let is_its = slice
        .thread_table
        .upid(reader)
        .is_some_and(|upid| processes.contains(&upid));
    // Only one thread can be known to read there if its process is not known.
    let may_be_its = processes.is_empty() && connections.is_own(peer);
    is_its || (may_be_its && is_sending(slice, call))
}

/// Processes at the other end of a thread's connection to `peer`.
fn processes_of<'m>(slice: &'m WindowSlice, utid: Utid, peer: &str, range: (Ns, Ns)) -> &'m [i32] {
    let connections = &slice.connections;
    let upid = slice.thread_table.upid(utid);
    let local = upid.and_then(|upid| connections.local_of(upid, peer, range));
    let sent = || connections.sent_by(utid, Some(peer), range.0);
    let local = local.or_else(|| sent()?.local.as_deref());
    let exact = local.map_or(&[][..], |local| connections.holders(local));
    if exact.is_empty() {
        connections.processes_at(peer)
    } else {
        exact
    }
}

/// A wait for a packet of this host whose sender did not run when it arrived. If it is not certain
/// which connection that was, only a thread that has just sent counts.
pub(crate) fn at_other_end(
    slice: &WindowSlice,
    sleep: &Segment,
    call: Option<&Call>,
    (peer, is_certain): (TextId, bool),
) -> Option<Sleep> {
    let address = slice.text(peer);
    let range = (sleep.begin, sleep.end);
    let processes = processes_of(slice, sleep.utid, address, range);
    let object = Some(Object::Peer(peer));
    let reason = |target, grade| Reason::new("local_ipc", target, grade).about(object);
    // A program that does not block in `connect` waits for the connection in `poll`.
    let opening = opening(slice, sleep, peer);
    let connects = opening.is_some() || call.is_some_and(|call| connects(slice, sleep, call));
    let found = if connects {
        acceptor(slice, processes, sleep)
    } else {
        last_sender(slice, processes, (sleep.utid, sleep.end))
            .or_else(|| only_thread(slice, processes, sleep.utid).filter(|_| is_certain))
    };
    let upid = slice.thread_table.upid(sleep.utid);
    let is_lossy = opening.unwrap_or_else(|| {
        upid.is_some_and(|upid| slice.connections.has_loss(upid, address, range))
    });
    let found = match found {
        None if !is_certain && opening.is_none() => return None,
        Some((thread, grade)) => follow(sleep, thread, reason(BlameTarget::Thread(thread), grade)),
        // The listener was ready, so the connection request was lost on its way.
        None if connects && is_lossy => {
            let lost = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::B);
            Sleep::Is(lost.about(object))
        }
        None => Sleep::Is(reason(BlameTarget::Unknown, Grade::C)),
    };
    Some(found)
}

/// Whether a thread waited for a connection to `peer` to be established (`None` if it did not), and
/// whether segments of that were retransmitted.
fn opening(slice: &WindowSlice, sleep: &Segment, peer: TextId) -> Option<bool> {
    let upid = slice.thread_table.upid(sleep.utid)?;
    let range = (sleep.begin, sleep.end);
    slice.connections.opening(upid, slice.text(peer), range)
}

/// A request without a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered<'m> {
    pub(crate) address: TextId,
    /// Own address of the connection.
    pub(crate) local: Option<&'m str>,
    pub(crate) since: Ns,
    /// The same request as its server saw it.
    server: Option<i64>,
}

/// The request whose reply a thread waits for in a sleep, and that had none at its end.
pub(crate) fn unanswered<'m>(
    slice: &'m WindowSlice,
    sleep: &Segment,
    call: &Call,
) -> Option<Unanswered<'m>> {
    // Between two requests, it slept because it wanted to.
    if Wait::of(slice, sleep, Some(call)).kind == WaitKind::Timer {
        return None;
    }
    let address = peer_of(slice, call)?;
    let peer = slice.text(address);
    let sent = slice
        .connections
        .sent_by(sleep.utid, Some(peer), sleep.begin)?;
    (sent.end >= sleep.end).then_some(Unanswered {
        address,
        local: sent.local.as_deref(),
        since: sent.begin,
        server: sent.server,
    })
}

/// A wait for the reply to a request that a process of this host had not replied to when a timeout
/// or the recording ended the wait.
pub(crate) fn not_replied(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<Sleep> {
    let sent = unanswered(slice, sleep, call).filter(|sent| is_own(slice, sent.address))?;
    let (peer, connections) = (sent.address, &slice.connections);
    let address = slice.text(peer);
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let turns = sent.server.map_or(&[][..], |id| connections.turns_of(id));
    let serving = turns
        .iter()
        .find(|turn| turn.begin <= middle && middle < turn.end && turn.utid != sleep.utid);
    let range = (sleep.begin, sleep.end);
    let processes = processes_of(slice, sleep.utid, address, range);
    let (thread, grade) = serving
        .map(|turn| (turn.utid, Grade::B))
        .or_else(|| only_thread(slice, processes, sleep.utid))?;
    let reason = Reason::new("local_ipc", BlameTarget::Thread(thread), grade);
    Some(follow(
        sleep,
        thread,
        reason.about(Some(Object::Peer(peer))),
    ))
}

/// The thread of these processes that sent last before a packet arrived.
pub(crate) fn last_sender(
    slice: &WindowSlice,
    processes: &[i32],
    (receiver, at): (Utid, Ns),
) -> Option<(Utid, Grade)> {
    let mut found: Vec<(Ns, Utid)> = Vec::new();
    for utid in threads_of(slice, processes, receiver) {
        let calls = slice.calls(utid, (at - SENT_NS, at + 1)).iter();
        let mut sent = calls.rev().filter(|call| is_sending(slice, call));
        found.extend(sent.next().map(|call| (call.begin, utid)));
    }
    let (_, last) = *found.iter().max()?;
    let grade = if found.len() == 1 { Grade::B } else { Grade::C };
    Some((last, grade))
}

/// The thread of a process that has only one.
fn only_thread(slice: &WindowSlice, processes: &[i32], receiver: Utid) -> Option<(Utid, Grade)> {
    let mut threads =
        threads_of(slice, processes, receiver).filter(|utid| slice.has_rows_of(*utid));
    let only = threads.next()?;
    threads.next().is_none().then_some((only, Grade::B))
}

/// The thread that accepts connections, if it did not wait for any: the kernel drops connection
/// requests when the listen queue is full.
fn acceptor(slice: &WindowSlice, processes: &[i32], sleep: &Segment) -> Option<(Utid, Grade)> {
    let accepts = |utid: &Utid| {
        let calls = slice.calls(*utid, (slice.begin, slice.end)).iter();
        let mut names = calls.map(|call| slice.text(call.name));
        names.any(|name| matches!(name, "accept" | "accept4"))
    };
    let threads = threads_of(slice, processes, sleep.utid);
    let mut accepting = threads.filter(accepts);
    let (found, grade) = match accepting.next() {
        Some(first) if accepting.next().is_none() => (first, Grade::B),
        // Any of them could have accepted it.
        Some(_) => return None,
        None => only_thread(slice, processes, sleep.utid)?,
    };
    let waits = |name: &str| {
        matches!(
            name,
            "accept"
                | "accept4"
                | "epoll_wait"
                | "epoll_pwait"
                | "epoll_pwait2"
                | "poll"
                | "ppoll"
                | "select"
                | "pselect6"
        )
    };
    let is_ready = slice.call_at(found, sleep.begin).is_some_and(|call| {
        let is_asleep = slice
            .states(found, (sleep.begin, sleep.begin + 1))
            .last()
            .is_some_and(|state| state.state == State::Sleeping);
        is_asleep && waits(slice.text(call.name))
    });
    (!is_ready).then_some((found, grade))
}

fn threads_of<'m>(
    slice: &'m WindowSlice,
    processes: &'m [i32],
    without: Utid,
) -> impl Iterator<Item = Utid> + use<'m> {
    let threads = processes
        .iter()
        .flat_map(move |upid| slice.thread_table.threads_of(*upid).iter().copied());
    threads.filter(move |utid| *utid != without)
}

/// The other end of the connection that a call waits for. A thread that waits for several sockets
/// has usually used one of them just before.
pub(crate) fn peer_of(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let is_address = |id: &TextId| split(&plain(slice.text(*id))).is_some();
    if let Some(path) = call.path {
        return Some(path).filter(|_| is_socket(slice, call));
    }
    let before = slice.calls(call.utid, (call.begin - USED_NS, call.begin + 1));
    before.iter().rev().find_map(|call| {
        let path = call.path.filter(is_address)?;
        is_socket(slice, call).then_some(path)
    })
}

/// The other end of the connection that ended a sleep, and whether that is certain. After a wait for
/// several sockets, a thread uses the one that is ready first.
pub(crate) fn peer_of_sleep(
    slice: &WindowSlice,
    sleep: &Segment,
    call: &Call,
) -> Option<(TextId, bool)> {
    if call.path.is_some() {
        return Some((peer_of(slice, call)?, true));
    }
    if !waits_for_any(slice, sleep) {
        return Some((peer_of(slice, call)?, false));
    }
    match used_next(slice, sleep, call).or_else(|| pending(slice, sleep, call)) {
        Some(next) => Some((next, true)),
        None => Some((peer_of(slice, call)?, false)),
    }
}

/// The other end of the connection that a thread uses first after a wait for several.
pub(crate) fn used_next(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<TextId> {
    let is_address = |id: &TextId| split(&plain(slice.text(*id))).is_some();
    let after = slice.calls(call.utid, (sleep.end, sleep.end + USED_NS));
    after.iter().find_map(|next| {
        let uses = matches!(slice.text(next.name), "accept" | "accept4")
            || is_receiving(slice, next)
            || is_sending(slice, next)
            || is_checked(slice, next);
        let path = next
            .path
            .filter(is_address)
            .filter(|_| next.id != call.id)?;
        (uses && is_socket(slice, next)).then_some(path)
    })
}

/// Whether an address is one of this host.
pub(crate) fn is_own(slice: &WindowSlice, address: TextId) -> bool {
    slice.connections.is_own(slice.text(address))
}

/// Whether a connected process is a client of this one: it used the address that this one serves.
pub(crate) fn is_client(slice: &WindowSlice, server: Utid, call: &Call) -> bool {
    let Some(address) = call.path.filter(|_| is_socket(slice, call)) else {
        return false;
    };
    let upid = slice.thread_table.upid(server);
    let at = slice.connections.processes_at(slice.text(address));
    upid.is_some_and(|upid| at.contains(&upid))
}
