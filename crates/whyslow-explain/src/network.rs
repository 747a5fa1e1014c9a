//! Sleeps that a packet ends: its sender, whether it was retransmitted, and the queried server.

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::classify::{Sleep, follow};
use crate::report::Grade;
use crate::window_slice::{Call, Packet, Segment, TextId, Unanswered, Utid, Wake, WindowSlice};

/// Maximum time between a resolver's query and its wait for the reply.
const QUERIED_NS: Ns = 50_000_000;
/// Maximum time between a timeout and the close of the socket.
const GIVEN_UP_NS: Ns = 20_000_000;

/// Over loopback and between network namespaces, packets arrive in the context of their sender.
pub(crate) fn sent_here(slice: &WindowSlice, sleep: &Segment, packet: i64) -> Option<Sleep> {
    let packet = slice.packet(packet)?;
    let sender = packet.utid?;
    let peer = packet.source.map(Object::Peer);
    let reason = Reason::new("local_ipc", BlameTarget::Thread(sender), Grade::A).about(peer);
    Some(follow(sleep, sender, reason))
}

pub(crate) fn from_network(
    slice: &WindowSlice,
    sleep: &Segment,
    call: Option<&Call>,
    wake: Option<&Wake>,
) -> Sleep {
    if let Some(server) = call.and_then(|call| name_server(slice, call)) {
        let reason = Reason::new("dns_lookup", BlameTarget::Peer(server), Grade::B);
        return Sleep::Is(reason.about(Some(Object::Peer(server))));
    }
    let peer = call.and_then(|call| call.path);
    // A thread that waits for several sockets has usually used one of them just before.
    let last = peer.or_else(|| call.and_then(|call| last_peer(slice, call)));
    let retransmitted = || {
        let inside = |packet: &&Packet| sleep.begin <= packet.ts && packet.ts < sleep.end;
        slice.resent.iter().filter(inside)
    };
    let is_of = |packet: &Packet, peer: TextId| {
        let ends = [packet.source, packet.destination];
        ends.iter().flatten().any(|end| names(slice, peer, *end))
    };
    if let Some(peer) = last
        && retransmitted().any(|packet| is_of(packet, peer))
    {
        let reason = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::A);
        return Sleep::Is(reason.about(Some(Object::Peer(peer))));
    }
    if peer.is_none()
        && let Some(packet) = retransmitted().next()
    {
        let target = packet
            .destination
            .map_or(BlameTarget::Unknown, BlameTarget::Peer);
        let reason = Reason::new("network_retransmit", target, Grade::B);
        return Sleep::Is(reason.about(packet.destination.map(Object::Peer)));
    }
    // The interrupted thread is a bystander unless it is sending at that time: what it sends over
    // loopback arrives within its own call.
    if let Some(wake) = wake
        && let Some(sender) = bystander(slice, wake)
        && sender != sleep.utid
        && let Some(sending) = slice.call_at(sender, wake.ts)
        && is_sending(slice, sending)
    {
        let peer = sending.path.map(Object::Peer);
        let reason = Reason::new("local_ipc", BlameTarget::Thread(sender), Grade::B);
        return follow(
            sleep,
            sender,
            reason.about(peer).by(Proof::Call(sending.id)),
        );
    }
    let is_socket = call.and_then(|call| call.fd_class);
    let is_known = is_socket.is_some_and(|class| slice.text(class).starts_with("inet"));
    let target = peer.map_or(BlameTarget::Unknown, BlameTarget::Peer);
    let grade = if is_known { Grade::B } else { Grade::C };
    Sleep::Is(Reason::new("network_remote", target, grade).about(peer.map(Object::Peer)))
}

/// The name server that the thread queried just before this call: resolvers send, then wait.
pub(crate) fn name_server(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let before = slice.calls(call.utid, (call.begin - QUERIED_NS, call.begin + 1));
    let names = |call: &&Call| {
        let path = call.path.map(|path| slice.text(path));
        path.is_some_and(|path| path.ends_with(":53"))
    };
    // If it has sent something else since then, it does not wait for a name.
    let others = |call: &&Call| {
        let is_sent = matches!(
            slice.text(call.name),
            "connect" | "sendto" | "sendmsg" | "sendmmsg" | "write"
        );
        is_sent && call.path.is_some()
    };
    let last = before.iter().rev().find(|call| names(call) || others(call));
    match last {
        Some(last) if names(&last) => last.path,
        _ => given_up(slice, call),
    }
}

/// The name server that the program itself queried: one thread waits for all sockets and timers,
/// and gives a query up when it times out.
fn given_up(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let upid = slice.thread_table.get(call.utid)?.upid?;
    let is_it = |query: &&Unanswered| {
        let is_begun = query.begin <= call.begin + QUERIED_NS;
        query.upid == upid && is_begun && (query.end - call.end).abs() <= GIVEN_UP_NS
    };
    let query = slice.unanswered.iter().find(is_it)?;
    Some(query.server)
}

/// The other end of the connection that the thread used last before this call.
fn last_peer(slice: &WindowSlice, call: &Call) -> Option<TextId> {
    let before = slice.calls(call.utid, (call.begin - QUERIED_NS, call.begin + 1));
    let is_net = |class: &TextId| slice.text(*class).starts_with("inet");
    let of_net = before
        .iter()
        .rev()
        .find(|call| call.fd_class.as_ref().is_some_and(is_net) && call.path.is_some());
    of_net?.path
}

/// Whether the description of a connection contains an address.
fn names(slice: &WindowSlice, connection: TextId, address: TextId) -> bool {
    slice.text(connection).contains(slice.text(address))
}

/// The thread that ran on the CPU of a wakeup.
fn bystander(slice: &WindowSlice, wake: &Wake) -> Option<Utid> {
    let on = slice.ran_on(wake.cpu?, (wake.ts, wake.ts + 1)).last();
    on.map(|segment| segment.utid)
}

fn is_sending(slice: &WindowSlice, call: &Call) -> bool {
    let name = slice.text(call.name);
    let is_socket = call
        .fd_class
        .is_none_or(|class| slice.text(class).starts_with("inet"));
    is_socket
        && matches!(
            name,
            "sendto"
                | "sendmsg"
                | "sendmmsg"
                | "send"
                | "write"
                | "writev"
                | "sendfile"
                | "sendfile64"
                | "splice"
                | "connect"
                | "shutdown"
                | "close"
        )
}
