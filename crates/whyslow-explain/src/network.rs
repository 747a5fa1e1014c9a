//! Sleeps that a packet ends: its sender, whether it was retransmitted, and the queried server.

use whyslow_model::Ns;

use crate::classify::{Sleep, follow};
use crate::leaf::{Object, Proof, Who, Why};
use crate::moment::{Call, Moment, Packet, Segment, Unanswered, Utid, Wake, Word};
use crate::report::Grade;

/// Maximum time between a resolver's query and its wait for the reply.
const QUERIED_NS: Ns = 50_000_000;
/// Maximum time between a timeout and the close of the socket.
const GIVEN_UP_NS: Ns = 20_000_000;

/// Over loopback and between network namespaces, packets arrive in the context of their sender.
pub(crate) fn sent_here(moment: &Moment, sleep: &Segment, packet: i64) -> Option<Sleep> {
    let packet = moment.packet(packet)?;
    let sender = packet.utid?;
    let peer = packet.source.map(Object::Peer);
    let why = Why::new("local_ipc", Who::Thread(sender), Grade::A).about(peer);
    Some(follow(sleep, sender, why))
}

pub(crate) fn from_network(
    moment: &Moment,
    sleep: &Segment,
    call: Option<&Call>,
    wake: Option<&Wake>,
) -> Sleep {
    if let Some(server) = call.and_then(|call| name_server(moment, call)) {
        let why = Why::new("dns_lookup", Who::Peer(server), Grade::B);
        return Sleep::Is(why.about(Some(Object::Peer(server))));
    }
    let peer = call.and_then(|call| call.path);
    // A thread that waits for several sockets has usually used one of them just before.
    let last = peer.or_else(|| call.and_then(|call| last_peer(moment, call)));
    let retransmitted = || {
        let inside = |packet: &&Packet| sleep.begin <= packet.ts && packet.ts < sleep.end;
        moment.resent.iter().filter(inside)
    };
    let is_of = |packet: &Packet, peer: Word| {
        let ends = [packet.source, packet.destination];
        ends.iter().flatten().any(|end| names(moment, peer, *end))
    };
    if let Some(peer) = last
        && retransmitted().any(|packet| is_of(packet, peer))
    {
        let why = Why::new("network_retransmit", Who::Peer(peer), Grade::A);
        return Sleep::Is(why.about(Some(Object::Peer(peer))));
    }
    if peer.is_none()
        && let Some(packet) = retransmitted().next()
    {
        let who = packet.destination.map_or(Who::Unknown, Who::Peer);
        let why = Why::new("network_retransmit", who, Grade::B);
        return Sleep::Is(why.about(packet.destination.map(Object::Peer)));
    }
    // The interrupted thread is a bystander unless it is sending at that time: what it sends over
    // loopback arrives within its own call.
    if let Some(wake) = wake
        && let Some(sender) = bystander(moment, wake)
        && sender != sleep.utid
        && let Some(sending) = moment.call_at(sender, wake.ts)
        && is_sending(moment, sending)
    {
        let peer = sending.path.map(Object::Peer);
        let why = Why::new("local_ipc", Who::Thread(sender), Grade::B);
        return follow(sleep, sender, why.about(peer).by(Proof::Call(sending.id)));
    }
    let is_socket = call.and_then(|call| call.fd_class);
    let is_known = is_socket.is_some_and(|class| moment.word(class).starts_with("inet"));
    let who = peer.map_or(Who::Unknown, Who::Peer);
    let grade = if is_known { Grade::B } else { Grade::C };
    Sleep::Is(Why::new("network_remote", who, grade).about(peer.map(Object::Peer)))
}

/// The name server that the thread queried just before this call: resolvers send, then wait.
pub(crate) fn name_server(moment: &Moment, call: &Call) -> Option<Word> {
    let before = moment.calls(call.utid, (call.begin - QUERIED_NS, call.begin + 1));
    let names = |call: &&Call| {
        let path = call.path.map(|path| moment.word(path));
        path.is_some_and(|path| path.ends_with(":53"))
    };
    // If it has sent something else since then, it does not wait for a name.
    let others = |call: &&Call| {
        let is_sent = matches!(
            moment.word(call.name),
            "connect" | "sendto" | "sendmsg" | "sendmmsg" | "write"
        );
        is_sent && call.path.is_some()
    };
    let last = before.iter().rev().find(|call| names(call) || others(call));
    match last {
        Some(last) if names(&last) => last.path,
        _ => given_up(moment, call),
    }
}

/// The name server that the program itself queried: one thread waits for all sockets and timers, and gives
/// a query up when it times out.
fn given_up(moment: &Moment, call: &Call) -> Option<Word> {
    let upid = moment.people.get(call.utid)?.upid?;
    let is_it = |query: &&Unanswered| {
        let is_begun = query.begin <= call.begin + QUERIED_NS;
        query.upid == upid && is_begun && (query.end - call.end).abs() <= GIVEN_UP_NS
    };
    let query = moment.unanswered.iter().find(is_it)?;
    Some(query.server)
}

/// The other end of the connection that the thread used last before this call.
fn last_peer(moment: &Moment, call: &Call) -> Option<Word> {
    let before = moment.calls(call.utid, (call.begin - QUERIED_NS, call.begin + 1));
    let is_net = |class: &Word| moment.word(*class).starts_with("inet");
    let of_net = before
        .iter()
        .rev()
        .find(|call| call.fd_class.as_ref().is_some_and(is_net) && call.path.is_some());
    of_net?.path
}

/// Whether the description of a connection contains an address.
fn names(moment: &Moment, connection: Word, address: Word) -> bool {
    moment.word(connection).contains(moment.word(address))
}

/// The thread that ran on the CPU of a wakeup.
fn bystander(moment: &Moment, wake: &Wake) -> Option<Utid> {
    let on = moment.ran_on(wake.cpu?, (wake.ts, wake.ts + 1)).last();
    on.map(|segment| segment.utid)
}

fn is_sending(moment: &Moment, call: &Call) -> bool {
    let name = moment.word(call.name);
    let is_socket = call
        .fd_class
        .is_none_or(|class| moment.word(class).starts_with("inet"));
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
