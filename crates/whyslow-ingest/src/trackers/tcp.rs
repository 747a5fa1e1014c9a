//! TCP connections, from state changes.
//!
//! One thread requests a connection, and one thread closes it; all other changes happen in the
//! context of whatever thread is running when a packet arrives. So a connection belongs to the
//! thread that requested it, and an accepted connection to the thread that closes it.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Endpoint, TcpChange, TcpState};
use whyslow_model::tables::{EmitAll, TcpConnectionRow};
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Here, Output, ThreadRef};
use super::net::write_address;

/// Maximum number of open connections; above it, their ends are dropped.
const OPEN_MAX: usize = 1 << 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Connect,
    Accept,
    /// The source reports the start, but not the side that initiated it.
    Unreported,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Local,
    Peer,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    origin: Origin,
    established: Option<Ns>,
    closed_by: Option<Side>,
    owner: Option<ThreadRef>,
    local: Option<Endpoint>,
    peer: Option<Endpoint>,
    /// The last change.
    change: TcpChange,
}

#[derive(Debug, Default)]
pub(super) struct TcpTracker {
    open: FxHashMap<u64, Open>,
    next_id: i64,
}

impl TcpTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        change: &TcpChange,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let origin = match (change.from, change.to) {
            (TcpState::Close, TcpState::SynSent) => Origin::Connect,
            (TcpState::Listen | TcpState::Close, TcpState::SynRecv) => Origin::Accept,
            // The kernel has no such transition: tools that report only the duration of a
            // connection use it.
            (TcpState::Close, TcpState::Established) => Origin::Unreported,
            _ => Origin::Unknown,
        };
        if origin != Origin::Unknown
            && let Some(before) = self.open.remove(&change.sock)
        {
            out.anomalies.count(&stat::TCP_END_MISSED, here.ts);
            put(&before, None, out);
        }
        let next_id = &mut self.next_id;
        let open = self.open.entry(change.sock).or_insert_with(|| {
            *next_id += 1;
            Open {
                id: *next_id - 1,
                ts: here.ts,
                origin,
                established: None,
                closed_by: None,
                owner: None,
                local: None,
                peer: None,
                change: *change,
            }
        });
        open.step(change, here);
        if change.to == TcpState::Close
            && let Some(open) = self.open.remove(&change.sock)
        {
            put(&open, Some(here.ts), out);
        }
        if self.open.len() > OPEN_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, here.ts);
            self.finish(out);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            put(open, None, out);
        }
    }
}

impl Open {
    fn step(&mut self, change: &TcpChange, here: &Here) {
        let thread = here.thread.filter(|_| !here.interrupted);
        match change.to {
            TcpState::SynSent => self.owner = thread,
            TcpState::Established => {
                self.established = Some(here.ts);
                if self.origin == Origin::Unreported {
                    self.owner = thread;
                }
            }
            // The side that closes first enters this state,
            TcpState::FinWait1 => {
                self.closed_by = self.closed_by.or(Some(Side::Local));
                self.owner = self.owner.or(thread);
            }
            TcpState::CloseWait => self.closed_by = self.closed_by.or(Some(Side::Peer)),
            // the side that closes second this one.
            TcpState::LastAck => self.owner = self.owner.or(thread),
            _ => {}
        }
        self.change = *change;
        self.local = better(change.local, self.local);
        self.peer = better(change.peer, self.peer);
    }

    fn outcome(&self, has_ended: bool) -> &'static str {
        const UNREACHABLE: [i32; 2] = [101, 113];
        const RESET: [i32; 2] = [32, 104];
        const TIMEOUT: i32 = 110;
        const REFUSED: i32 = 111;
        // The kernel's error for a connection that this side aborts.
        const ABORTED: i32 = 103;
        match self.change.error {
            _ if !has_ended => "open",
            _ if self.origin == Origin::Unreported => "unknown",
            REFUSED => "refused",
            TIMEOUT => "timeout",
            error if RESET.contains(&error) => "reset",
            error if UNREACHABLE.contains(&error) => "unreachable",
            0 | ABORTED if self.is_closed_by_both() => "closed",
            0 | ABORTED => "aborted",
            _ => "failed",
        }
    }

    /// Both sides know that it ended, as far as this side knows.
    fn is_closed_by_both(&self) -> bool {
        use TcpState::{Closing, FinWait1, FinWait2, LastAck, TimeWait};
        [FinWait1, FinWait2, Closing, LastAck, TimeWait].contains(&self.change.from)
    }
}

/// The endpoint with a known port: the kernel may not know it before and after the connection.
fn better(new: Option<Endpoint>, old: Option<Endpoint>) -> Option<Endpoint> {
    let is_better = new.is_some_and(|new| new.port.is_some());
    if is_better || old.is_none() { new } else { old }
}

fn text<S: EmitAll>(side: Option<Endpoint>, out: &mut Output<'_, S>) -> Option<Sym> {
    let side = side?;
    let mut text = String::new();
    write_address(&mut text, side.address, side.port);
    Some(out.symbols.intern(&text))
}

fn put<S: EmitAll>(open: &Open, end: Option<Ns>, out: &mut Output<'_, S>) {
    let change = &open.change;
    let is_whole = open.origin != Origin::Unknown;
    let connected = open
        .established
        .filter(|_| open.origin == Origin::Connect)
        .map(|at| at.saturating_sub(open.ts));
    let kind = match open.origin {
        Origin::Connect => "connect",
        Origin::Accept => "accept",
        Origin::Unreported | Origin::Unknown => "unknown",
    };
    let closed_by = open.closed_by.map(|side| match side {
        Side::Local => "local",
        Side::Peer => "peer",
    });
    let bytes = |bytes: Option<u64>| bytes.and_then(|bytes| i64::try_from(bytes).ok());
    let row = TcpConnectionRow {
        id: open.id,
        ts: open.ts,
        dur: end
            .filter(|_| is_whole)
            .map(|end| end.saturating_sub(open.ts)),
        ts_end: end,
        kind: out.symbols.intern_static(kind),
        outcome: out.symbols.intern_static(open.outcome(end.is_some())),
        closed_by: closed_by.map(|side| out.symbols.intern_static(side)),
        local: text(open.local, out),
        peer: text(open.peer, out),
        connect_ns: connected,
        state: out.symbols.intern_static(change.to.name()),
        bytes_sent: bytes(change.acked),
        bytes_received: bytes(change.received),
        retransmits: change.retransmits.map(i64::from),
        rtt_ns: change
            .rtt_us
            .filter(|rtt| *rtt > 0)
            .map(|rtt| i64::from(rtt) * 1000),
        error: Some(change.error).filter(|error| end.is_some() && *error != 0),
        utid: open.owner.map(|thread| thread.utid),
        upid: open.owner.and_then(|thread| thread.upid),
        tid: open.owner.map(|thread| thread.tid),
        pid: open.owner.and_then(|thread| thread.pid),
        comm: open.owner.and_then(|thread| thread.comm),
    };
    out.sink.emit(row);
}
