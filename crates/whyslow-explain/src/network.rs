//! Sleeps that a packet ends: its sender, whether it was retransmitted, and the queried server.

pub(crate) mod name_server;

use whyslow_model::Ns;

use self::name_server::name_server;
use crate::blame_target::{BlameTarget, Object, Reason};
use crate::classify::sleep::{Sleep, follow};
use crate::connecting::connects;
use crate::peers;
use crate::peers::socket_calls::is_same;
use crate::report::Grade;
use crate::window_slice::{Call, Cause, Packet, Segment, State, TextId, Utid, Wake, WindowSlice};

/// A packet retransmitted to the same machine has arrived after this time.
pub(crate) const ARRIVES_NS: Ns = 10_000_000;

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
        return replied(slice, sleep, (call, wake), server);
    }
    let is_named = |path: &TextId| !slice.text(*path).starts_with("socket");
    let peer = call.and_then(|call| call.path).filter(is_named);
    let of_sleep = call.and_then(|call| peers::peer_of_sleep(slice, sleep, call));
    let last = peer.or(of_sleep.map(|(peer, _)| peer));
    // A full listen queue loses connection requests, too: its owner is the cause then.
    if let Some(own) = of_sleep.filter(|(peer, _)| peers::is_own(slice, *peer))
        && call.is_some_and(|call| connects(slice, sleep, call))
        && let Some(found @ Sleep::For { .. }) = peers::at_other_end(slice, sleep, call, own)
    {
        return found;
    }
    if let Some(reason) = retransmitted(slice, sleep, (peer, last)) {
        return Sleep::Is(reason);
    }
    // The interrupted thread is a bystander unless it uses a connection at that time: what it sends
    // over loopback arrives within its own call.
    if !is_from_elsewhere(slice, sleep)
        && let Some((sender, reason)) = peers::in_context(slice, sleep, call, wake)
    {
        return follow(sleep, sender, reason);
    }
    if let Some(own) = of_sleep.filter(|(peer, _)| peers::is_own(slice, *peer))
        && let Some(found) = peers::at_other_end(slice, sleep, call, own)
    {
        return found;
    }
    let is_socket = call.and_then(|call| call.fd_class);
    let is_known = is_socket.is_some_and(|class| slice.text(class).starts_with("inet"));
    let target = peer.map_or(BlameTarget::Unknown, BlameTarget::Peer);
    let grade = if is_known && peer.is_some() {
        Grade::B
    } else {
        Grade::C
    };
    Sleep::Is(Reason::new("network_remote", target, grade).about(peer.map(Object::Peer)))
}

/// A wait for the reply of a name server. One of this host is followed like any other peer here.
fn replied(
    slice: &WindowSlice,
    sleep: &Segment,
    (call, wake): (Option<&Call>, Option<&Wake>),
    server: TextId,
) -> Sleep {
    if peers::is_own(slice, server) && !is_from_elsewhere(slice, sleep) {
        let sender = peers::in_context(slice, sleep, call, wake);
        let found = sender.or_else(|| {
            let processes = slice.connections.processes_at(slice.text(server));
            let receiver = (sleep.utid, sleep.end);
            let (thread, grade) = peers::last_sender(slice, processes, receiver)?;
            let target = BlameTarget::Thread(thread);
            Some((thread, Reason::new("local_ipc", target, grade)))
        });
        if let Some((thread, reason)) = found {
            let reason = Reason {
                mechanism: "dns_lookup",
                ..reason
            };
            return follow(sleep, thread, reason.about(Some(Object::Peer(server))));
        }
    }
    Sleep::Is(unreplied(slice, sleep, server))
}

/// A name server that did not reply, as far as is known. Behind an address of this host is a
/// process of this host, and without its name the cause is not known.
pub(crate) fn unreplied(slice: &WindowSlice, sleep: &Segment, server: TextId) -> Reason {
    let (target, grade) = if peers::is_own(slice, server) {
        match replies(slice, sleep, server) {
            Some(thread) => (BlameTarget::Thread(thread), Grade::B),
            None => (BlameTarget::Peer(server), Grade::C),
        }
    } else {
        (BlameTarget::Peer(server), Grade::B)
    };
    Reason::new("dns_lookup", target, grade).about(Some(Object::Peer(server)))
}

/// The thread of this host that replied to another query of the process to the same name server.
fn replies(slice: &WindowSlice, sleep: &Segment, server: TextId) -> Option<Utid> {
    let upid = slice.thread_table.get(sleep.utid)?.upid?;
    let threads = slice.thread_table.threads_of(upid).iter();
    let sleeps = threads.flat_map(|utid| slice.states(*utid, (slice.begin, slice.end)));
    let others =
        sleeps.filter(|other| other.state == State::Sleeping && other.begin != sleep.begin);
    let mut repliers = others.filter_map(|other| {
        let call = slice.call_at(other.utid, other.begin)?;
        let wake = other.wakeup.and_then(|wake| slice.wake(wake));
        if name_server(slice, call) != Some(server) {
            return None;
        }
        let (replier, _) = peers::in_context(slice, other, Some(call), wake)?;
        let is_other = !slice.thread_table.same_process(replier, sleep.utid);
        is_other.then_some(replier)
    });
    repliers.next()
}

/// A wait for the reply to a request that a timeout ended: its segments were lost on the way, whoever
/// the peer is, or another host did not reply. The kernel of a host that received them would have
/// acknowledged them, even if its process had not replied.
pub(crate) fn timed_out(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<Sleep> {
    let peer = peers::unanswered(slice, sleep, call)?;
    let object = Some(Object::Peer(peer.address));
    let reason = |mechanism, grade| {
        let target = BlameTarget::Peer(peer.address);
        Sleep::Is(Reason::new(mechanism, target, grade).about(object))
    };
    let range = (peer.since, sleep.end);
    let was_resent = slice.resent.iter().any(|packet| {
        let is_to = packet
            .destination
            .is_some_and(|end| names(slice, peer.address, end));
        is_to && range.0 <= packet.ts && packet.ts < range.1
    });
    let upid = slice.thread_table.upid(sleep.utid);
    let mut lossy = slice
        .connections
        .lossy_to(slice.text(peer.address), upid, range);
    if was_resent || lossy.any(|local| peer.local.is_none_or(|own| own == local)) {
        return Some(reason("network_retransmit", Grade::B));
    }
    let is_remote = !peers::is_own(slice, peer.address);
    is_remote.then(|| reason("network_remote", Grade::B))
}

/// Whether the recorded packet that ended a sleep was sent by another host.
fn is_from_elsewhere(slice: &WindowSlice, sleep: &Segment) -> bool {
    let Cause::Received(packet) = sleep.cause else {
        return false;
    };
    let source = slice.packet(packet).and_then(|packet| packet.source);
    source.is_some_and(|source| !peers::is_own(slice, source))
}

/// A segment of the connection with `last` was retransmitted in the sleep; any segment if neither
/// end is known.
fn retransmitted(
    slice: &WindowSlice,
    sleep: &Segment,
    (peer, last): (Option<TextId>, Option<TextId>),
) -> Option<Reason> {
    // Another host may have worked for the rest of the time. On this host that is seen: the
    // retransmitted segment has to be what ended the sleep.
    let is_own = last.is_some_and(|peer| peers::is_own(slice, peer));
    let from = if is_own {
        sleep.begin.max(sleep.end - ARRIVES_NS)
    } else {
        sleep.begin
    };
    let inside = |packet: &&Packet| from <= packet.ts && packet.ts < sleep.end;
    let is_of = |packet: &Packet, peer: TextId| {
        let ends = [packet.source, packet.destination];
        ends.iter().flatten().any(|end| names(slice, peer, *end))
    };
    let mut resent = slice.resent.iter().filter(inside);
    if let Some(peer) = last
        && resent.clone().any(|packet| is_of(packet, peer))
    {
        let reason = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::A);
        return Some(reason.about(Some(Object::Peer(peer))));
    }
    let packet = resent.next().filter(|_| peer.is_none() && !is_own)?;
    let target = packet
        .destination
        .map_or(BlameTarget::Unknown, BlameTarget::Peer);
    let reason = Reason::new("network_retransmit", target, Grade::B);
    Some(reason.about(packet.destination.map(Object::Peer)))
}

/// Whether the description of a connection contains an address.
fn names(slice: &WindowSlice, connection: TextId, address: TextId) -> bool {
    if is_same(slice, connection, address) {
        return true;
    }
    let (text, address) = (slice.text(connection), slice.text(address));
    // Not as a part of a longer address or port.
    text.match_indices(address).any(|(at, found)| {
        let is_part = |one: char| one.is_ascii_alphanumeric() || one == '.';
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(|one| one.is_ascii_digit())
    })
}
