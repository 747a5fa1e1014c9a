//! Requests and replies between two threads of this host that were lost on their way, and arrived
//! only when they were retransmitted.
//!
//! The packets need not be recorded: the calls of both threads show when a message was sent and when
//! it was received, and the connection reports that segments of it were retransmitted.

use whyslow_model::Ns;

use crate::addresses::plain;
use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::middlemen::is_idle_wait;
use crate::peers::{self, is_receiving, is_sending_data};
use crate::report::Grade;
use crate::window_slice::{State, Utid, WindowSlice};

/// The kernel retransmits after at least 200 ms (`TCP_RTO_MIN`), in whole ticks.
const RETRANSMITTED_MIN_NS: Ns = 190_000_000;

/// The part of the wait of a thread for another one in which the network had the message: the
/// other thread waited for work until the retransmitted request arrived, or had replied already.
pub(crate) fn on_the_way(
    slice: &WindowSlice,
    (waiter, server): (Utid, Utid),
    (begin, end): (Ns, Ns),
) -> Option<((Ns, Ns), Reason)> {
    if end - begin < RETRANSMITTED_MIN_NS || slice.thread_table.same_process(waiter, server) {
        return None;
    }
    let before = slice.calls(waiter, (begin - peers::USED_NS, begin + 1));
    let sends = |call: &&_| is_sending_data(slice, call);
    let sent = before
        .iter()
        .rev()
        .filter(sends)
        .find(|call| call.path.is_some())?;
    let peer = sent.path.filter(|peer| peers::is_own(slice, *peer))?;
    let calls = || slice.calls(server, (sent.begin, end + 1)).iter();
    let upid = slice.thread_table.upid(waiter);
    let range = (sent.begin, end);
    let lossy: Vec<&str> = slice
        .connections
        .lossy_to(slice.text(peer), upid, range)
        .collect();
    let lost = |range, call: i64| {
        let reason = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::B);
        let reason = reason.about(Some(Object::Peer(peer)));
        (range, reason.by(Proof::Call(call)))
    };
    let received = calls().find(|call| {
        let path = call.path.map(|path| plain(slice.text(path)));
        let is_of = path.is_some_and(|path| lossy.contains(&&*path));
        is_of && is_receiving(slice, call) && call.begin > sent.begin
    });
    if let Some(received) = received {
        let states = slice.states(server, (sent.begin, received.begin)).iter();
        let slept = states.rev().find(|one| one.state == State::Sleeping)?;
        let is_late = slept.end - sent.end >= RETRANSMITTED_MIN_NS;
        if is_late && is_idle_wait(slice, slept) {
            return Some(lost((begin, slept.end.min(end)), sent.id));
        }
    }
    let replied = calls().rfind(|call| is_sending_data(slice, call))?;
    let client = replied.path.map(|path| slice.text(path))?;
    let server_end = plain(slice.text(peer));
    let upid = slice.thread_table.upid(server);
    let mut lossy = slice.connections.lossy_to(client, upid, range);
    if end - replied.end < RETRANSMITTED_MIN_NS || !lossy.any(|local| *local == *server_end) {
        return None;
    }
    let middle = replied.end + (end - replied.end) / 2;
    let state = slice.states(server, (middle, middle + 1)).last()?;
    let is_done = state.state == State::Sleeping && is_idle_wait(slice, state);
    is_done.then(|| lost((replied.end.max(begin), end), replied.id))
}
