//! Sleeps that a packet ends: who sent it, whether it was lost before, and who was asked for it.

use whyslow_model::Ns;

use crate::classify::{Sleep, follow};
use crate::leaf::{Object, Proof, Who, Why};
use crate::moment::{Call, Moment, Packet, Segment, Unanswered, Utid, Wake, Word};
use crate::report::Grade;

/// A resolver waits so soon after it asked.
const ASKED_NS: Ns = 50_000_000;
/// A program closes the socket so soon after the time is over.
const GIVEN_UP_NS: Ns = 20_000_000;

/// Over loopback and between network namespaces packets arrive in the context of their sender.
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
    // Whoever waits for several at once has spoken to one of them just before, most often.
    let asked = peer.or_else(|| call.and_then(|call| last_peer(moment, call)));
    let sent_again = || {
        let inside = |packet: &&Packet| sleep.begin <= packet.ts && packet.ts < sleep.end;
        moment.resent.iter().filter(inside)
    };
    let is_of = |packet: &Packet, peer: Word| {
        let ends = [packet.source, packet.destination];
        ends.iter().flatten().any(|end| names(moment, peer, *end))
    };
    if let Some(asked) = asked
        && sent_again().any(|packet| is_of(packet, asked))
    {
        let why = Why::new("network_retransmit", Who::Peer(asked), Grade::A);
        return Sleep::Is(why.about(Some(Object::Peer(asked))));
    }
    if peer.is_none()
        && let Some(packet) = sent_again().next()
    {
        let who = packet.destination.map_or(Who::Unknown, Who::Peer);
        let why = Why::new("network_retransmit", who, Grade::B);
        return Sleep::Is(why.about(packet.destination.map(Object::Peer)));
    }
    // Who was interrupted is a bystander, unless it is sending just then: what it sends over
    // loopback arrives inside of its own call.
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

/// A server of names that the thread asked just before this call: resolvers send, then wait.
pub(crate) fn name_server(moment: &Moment, call: &Call) -> Option<Word> {
    let before = moment.calls(call.utid, (call.begin - ASKED_NS, call.begin + 1));
    let names = |call: &&Call| {
        let path = call.path.map(|path| moment.word(path));
        path.is_some_and(|path| path.ends_with(":53"))
    };
    // What else it sent since then, it does not wait for a name.
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

/// A server of names that the program asked itself: one thread waits for all of its sockets and
/// times, and has a question given up when its time is over.
fn given_up(moment: &Moment, call: &Call) -> Option<Word> {
    let upid = moment.people.get(call.utid)?.upid?;
    let is_it = |asked: &&Unanswered| {
        let is_begun = asked.begin <= call.begin + ASKED_NS;
        asked.upid == upid && is_begun && (asked.end - call.end).abs() <= GIVEN_UP_NS
    };
    let asked = moment.unanswered.iter().find(is_it)?;
    Some(asked.server)
}

/// The other end of the connection that the thread used last before this call.
fn last_peer(moment: &Moment, call: &Call) -> Option<Word> {
    let before = moment.calls(call.utid, (call.begin - ASKED_NS, call.begin + 1));
    let is_net = |class: &Word| moment.word(*class).starts_with("inet");
    let of_net = before
        .iter()
        .rev()
        .find(|call| call.fd_class.as_ref().is_some_and(is_net) && call.path.is_some());
    of_net?.path
}

/// Whether one description of a connection names an address.
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
