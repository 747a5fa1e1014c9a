//! Threads between a waiting thread and the one that it waits for in the end: proxies, backends,
//! event loops, threads of pools.
//!
//! A thread that is asleep when the wait for it starts may have started the work already, and wait
//! for another one: the work was passed to it when the waiting thread sent it, which is before that
//! thread waits for the reply.

use whyslow_model::Ns;

use crate::addresses::plain;
use crate::blame_target::{BlameTarget, Reason};
use crate::network::name_server::name_server;
use crate::peers::{is_receiving, is_sending_data};
use crate::report::Part;
use crate::wait_kind::{Wait, WaitKind};
use crate::window_slice::{Call, Exchange, Segment, State, Turn, Utid, WindowSlice};

/// A mutex of glibc, Rust or Go has this value if threads wait for it.
const MUTEX_CONTENDED: i64 = 2;

/// A message wakes the thread that waits for it within this time …
const WAKES_NS: Ns = 1_000_000;
/// … and that thread receives it this soon after it wakes.
const READS_NS: Ns = 20_000_000;

pub(crate) const WAITS_FOR_ANY: [&str; 8] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "io_getevents",
];

/// When the work that a sleep is for was passed to the thread that it waits for: `None` if that is
/// not known. A holder of a lock holds it whatever it waits for itself. `not_before`: when the
/// sleeping thread got its own work.
pub(crate) fn since(
    slice: &WindowSlice,
    sleep: &Segment,
    reason: &Reason,
    not_before: Ns,
) -> Option<Ns> {
    let call = slice.call_at(sleep.utid, sleep.begin)?;
    match reason.mechanism {
        "lock_kernel" | "lock_inode" | "lock_program" => Some(Ns::MIN),
        "lock_futex" if is_mutex(slice, sleep) => Some(Ns::MIN),
        "local_ipc" | "pipe_wait" | "woken_by" | "lock_futex" => {
            let passed = passed(slice, sleep, call, not_before);
            passed.or_else(|| is_turn(slice, sleep, reason).then_some(Ns::MIN))
        }
        _ => None,
    }
}

/// Whether a thread waits for its turn: it has passed nothing to the other thread of its process,
/// and continues when that one wakes it. What that thread waits for, it waited for already, as the
/// holder of a lock does.
fn is_turn(slice: &WindowSlice, sleep: &Segment, reason: &Reason) -> bool {
    let BlameTarget::Thread(other) = reason.target else {
        return false;
    };
    let is_message = matches!(reason.mechanism, "local_ipc" | "pipe_wait");
    is_message && other != sleep.utid && slice.thread_table.same_process(sleep.utid, other)
}

fn is_mutex(slice: &WindowSlice, sleep: &Segment) -> bool {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let mut waits = slice.futex_waits(sleep.utid).iter();
    waits.any(|wait| {
        wait.begin <= middle && middle < wait.end && wait.value == Some(MUTEX_CONTENDED)
    })
}

/// Start of the last call before a sleep that passes something to another thread.
fn passed(slice: &WindowSlice, sleep: &Segment, call: &Call, not_before: Ns) -> Option<Ns> {
    if is_giving(slice, call) {
        // It waits in the middle of that.
        return Some(call.begin.max(not_before));
    }
    let from = slice.begin.max(not_before);
    let before = slice.calls(sleep.utid, (from, call.begin));
    let before = || {
        before
            .iter()
            .rev()
            .filter(|one| one.begin >= from && one.id != call.id)
    };
    let is_inet = call
        .fd_class
        .is_some_and(|class| slice.text(class).starts_with("inet"));
    let on_same = || {
        let fd = call.fd?;
        before().find(|one| one.fd == Some(fd) && is_giving(slice, one))
    };
    // The reply to what was written to a pipe may come through another one.
    let any = || {
        let mut given = before().filter(|one| is_giving(slice, one));
        given.next().filter(|_| !is_inet)
    };
    on_same().or_else(any).map(|one| one.begin)
}

/// Whether a call passes something to another thread.
fn is_giving(slice: &WindowSlice, call: &Call) -> bool {
    let class = call.fd_class.map(|class| slice.text(class));
    match slice.text(call.name) {
        "connect" | "sendto" | "sendmsg" | "sendmmsg" | "send" | "msgsnd" | "mq_timedsend"
        | "io_uring_enter" => true,
        "write" | "writev" | "sendfile" | "sendfile64" | "splice" => matches!(
            class,
            None | Some("pipe" | "unix" | "eventfd" | "inet" | "inet6" | "socket" | "unknown")
        ),
        // The number of woken threads.
        name if name.starts_with("futex") => call.ret.is_some_and(|woken| woken > 0),
        _ => false,
    }
}

/// Whether a thread waits for work, rather than in the middle of it.
pub(crate) fn is_idle_wait(slice: &WindowSlice, segment: &Segment) -> bool {
    let Some(call) = slice.call_at(segment.utid, segment.begin) else {
        return false;
    };
    // In the middle of a DNS lookup, which holds up its work.
    if name_server(slice, call).is_some() {
        return false;
    }
    // Work may have arrived that it cannot start.
    let is_frozen = || Wait::of(slice, segment, Some(call)).kind == WaitKind::Frozen;
    if segment.state == State::Stopped || is_frozen() {
        return false;
    }
    let name = slice.text(call.name);
    let is_waiting = WAITS_FOR_ANY.contains(&name)
        || matches!(
            name,
            "accept"
                | "accept4"
                | "recvfrom"
                | "recvmsg"
                | "wait4"
                | "waitid"
                | "rt_sigtimedwait"
                | "read"
        );
    is_waiting
        && call.begin <= segment.begin
        && (name != "read"
            || call.fd_class.is_some_and(|class| {
                matches!(
                    slice.text(class),
                    "pipe"
                        | "unix"
                        | "eventfd"
                        | "inet"
                        | "inet6"
                        | "socket"
                        | "tty"
                        | "inotify"
                        | "timerfd"
                        | "signalfd"
                )
            }))
}

/// The process of the client that a thread waits for in the middle of its request: it serves the
/// client at the other end, and has sent that nothing yet.
pub(crate) fn client_of_rest(slice: &WindowSlice, segment: &Segment) -> Option<i32> {
    let call = slice.call_at(segment.utid, segment.begin)?;
    let peer = call.path.filter(|_| is_receiving(slice, call))?;
    let peer = plain(slice.text(peer));
    let connections = &slice.connections;
    let turns = connections.served_by(segment.utid).iter();
    let mut turns = turns.filter(|turn| turn.begin < segment.begin && segment.end <= turn.end);
    let turn = turns.find(|turn| {
        let request = connections.exchange(turn.request);
        let client = request.and_then(|request| request.peer.as_deref());
        client.is_some_and(|client| plain(client) == peer)
    })?;
    let before = slice
        .calls(segment.utid, (turn.begin, segment.begin))
        .iter();
    let mut before = before.filter(|one| one.begin >= turn.begin && one.fd == call.fd);
    match connections.processes_at(&peer) {
        [one] if !before.any(|one| is_sending_data(slice, one)) => Some(*one),
        _ => None,
    }
}

/// Whether an event loop or a worker slept on when a message of another process arrived for it,
/// and received it only after that: it was not idle, but waited for something else.
pub(crate) fn has_slept_through(
    slice: &WindowSlice,
    segment: &Segment,
    (sender, sent): (Utid, Ns),
) -> bool {
    if segment.end - sent.max(segment.begin) < WAKES_NS {
        return false;
    }
    let Some(upid) = slice.thread_table.upid(sender) else {
        return false;
    };
    let after = slice
        .calls(segment.utid, (segment.end, segment.end + READS_NS))
        .iter();
    let mut received = after
        .filter(|call| call.begin >= segment.end && call.ret.is_some_and(|bytes| bytes > 0))
        .filter(|call| is_receiving(slice, call))
        .filter_map(|call| call.path);
    received.any(|peer| {
        slice
            .connections
            .processes_at(slice.text(peer))
            .contains(&upid)
    })
}

/// Whether the culprit of a part waited for any of several descriptors.
pub(crate) fn is_event_loop(part: &Part) -> bool {
    let activity = part.activity.as_ref();
    activity.is_some_and(|activity| WAITS_FOR_ANY.contains(&activity.call.as_str()))
}

/// Whether a thread waits for any of several descriptors, as event loops do.
pub(crate) fn waits_for_any(slice: &WindowSlice, segment: &Segment) -> bool {
    let call = slice.call_at(segment.utid, segment.begin);
    call.is_some_and(|call| WAITS_FOR_ANY.contains(&slice.text(call.name)))
}

/// A piece of the wait of a server for another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nested<'m> {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// The request of the server to the other one …
    pub(crate) request: &'m Exchange,
    /// … and the thread that had it there, if it is of this host.
    pub(crate) turn: Option<Turn>,
}

/// What a thread that serves `request` waited for in a range: its own requests to other servers that
/// it had sent for that. Event loops are woken for other requests in the meantime.
pub(crate) fn nested(
    slice: &WindowSlice,
    (request, server): (i64, Utid),
    (begin, end): (Ns, Ns),
) -> Vec<Nested<'_>> {
    let connections = &slice.connections;
    let upid = slice.thread_table.upid(server);
    let mut pieces = Vec::new();
    let mut at = begin;
    for sent in connections.nested_in(request) {
        let (from, to) = (sent.begin.max(at), sent.end.min(end));
        if to <= from || sent.upid != upid {
            continue;
        }
        let turns = sent.server.map_or(&[][..], |id| connections.turns_of(id));
        let mut done = from;
        for turn in turns {
            let (first, last) = (turn.begin.max(done), turn.end.min(to));
            if last > first && turn.utid != server {
                pieces.push(Nested {
                    begin: first,
                    end: last,
                    request: sent,
                    turn: Some(*turn),
                });
                done = last;
            }
        }
        if done == from && sent.server.is_none() {
            pieces.push(Nested {
                begin: from,
                end: to,
                request: sent,
                turn: None,
            });
            done = to;
        }
        at = at.max(done);
    }
    pieces
}
