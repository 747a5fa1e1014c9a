//! DNS queries, derived from system calls on sockets.
//!
//! Data sent to port 53 is a query, and data read from the same socket is a reply. Packet contents
//! are not parsed, so replies are assumed to come in the order of the queries. A query that is
//! still open when more is sent than belongs to the same round did not get a reply in time; neither
//! did one whose socket is closed.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::tables::{DnsQueryRow, EmitAll};
use whyslow_model::{Ns, Sym, stat};

use super::fd::Owner;
use super::identity::{Output, ThreadRef};
use super::lookup::LookupTracker;

/// Maximum number of sockets with queries that are tracked at a time.
const SOCKETS_MAX: usize = 65_536;
/// Maximum number of open queries per socket, for programs that never read.
const OPEN_MAX: usize = 1_024;
/// Queries sent within this time belong to the same round: both address types.
const ROUND_NS: Ns = 50_000_000;

/// Socket operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum DnsOp {
    /// Messages sent to a name server.
    Queried {
        server: Sym,
        messages: i64,
    },
    /// Messages received.
    Read {
        messages: i64,
    },
    Closed,
}

/// A call on a socket that may be used for DNS.
#[derive(Debug, Clone, Copy)]
pub(super) struct DnsCall {
    pub(super) op: DnsOp,
    pub(super) owner: Owner,
    pub(super) fd: i32,
    /// Start and end of the call.
    pub(super) ts: Ns,
    pub(super) ts_end: Ns,
    pub(super) thread: ThreadRef,
    pub(super) cpu: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    server: Sym,
    attempt: Option<i32>,
    lookup: Option<(i64, Option<Sym>)>,
    thread: ThreadRef,
    cpu: Option<i32>,
}

/// Rounds of a lookup without a reply.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    lookup: i64,
    lost: i32,
}

#[derive(Debug, Default)]
pub(super) struct QueryTracker {
    sockets: FxHashMap<(Owner, i32), VecDeque<Open>>,
    /// Rounds of the lookup that a thread is in.
    rounds: FxHashMap<i32, Rounds>,
    next_id: i64,
}

impl QueryTracker {
    pub(super) fn call<S: EmitAll>(
        &mut self,
        call: &DnsCall,
        lookups: &LookupTracker,
        out: &mut Output<'_, S>,
    ) {
        match call.op {
            DnsOp::Queried { server, messages } => {
                self.queried(call, (server, messages), lookups, out);
            }
            DnsOp::Read { messages } => {
                let Some(open) = self.sockets.get_mut(&(call.owner, call.fd)) else {
                    return;
                };
                let count = (messages.max(0) as usize).min(open.len());
                for query in open.drain(..count) {
                    emit(&query, Some((call.ts_end, "answered")), out);
                }
                // Programs that never close their sockets must not leave empty entries behind.
                if open.is_empty() {
                    self.sockets.remove(&(call.owner, call.fd));
                }
            }
            DnsOp::Closed => {
                if let Some(open) = self.sockets.remove(&(call.owner, call.fd)) {
                    self.lost(open, (call.ts, "given_up"), out);
                }
            }
        }
    }

    fn queried<S: EmitAll>(
        &mut self,
        call: &DnsCall,
        (server, messages): (Sym, i64),
        lookups: &LookupTracker,
        out: &mut Output<'_, S>,
    ) {
        let key = (call.owner, call.fd);
        if !self.sockets.contains_key(&key) && self.sockets.len() >= SOCKETS_MAX {
            return out.anomalies.count(&stat::QUERIES_LIMIT, call.ts);
        }
        let open = self.sockets.entry(key).or_default();
        let is_over = |open: &Open| call.ts.saturating_sub(open.ts) > ROUND_NS;
        let over: VecDeque<Open> = match open.back() {
            Some(last) if is_over(last) => std::mem::take(open),
            _ => VecDeque::new(),
        };
        self.lost(over, (call.ts, "asked_again"), out);
        let lookup = lookups.of(&call.thread);
        let attempt = lookup.map(|(id, _)| {
            let rounds = self.rounds.get(&call.thread.utid);
            1 + rounds.filter(|r| r.lookup == id).map_or(0, |r| r.lost)
        });
        let open = self.sockets.entry(key).or_default();
        for _ in 0..messages.max(0) {
            if open.len() >= OPEN_MAX {
                return out.anomalies.count(&stat::QUERIES_LIMIT, call.ts);
            }
            open.push_back(Open {
                id: self.next_id,
                ts: call.ts,
                server,
                attempt,
                lookup,
                thread: call.thread,
                cpu: call.cpu,
            });
            self.next_id += 1;
        }
    }

    /// These got no reply.
    fn lost<S: EmitAll>(
        &mut self,
        open: VecDeque<Open>,
        end: (Ns, &'static str),
        out: &mut Output<'_, S>,
    ) {
        if let Some(first) = open.front()
            && let Some((lookup, _)) = first.lookup
        {
            let none = Rounds { lookup, lost: 0 };
            let rounds = self.rounds.entry(first.thread.utid).or_insert(none);
            if rounds.lookup != lookup {
                *rounds = none;
            }
            rounds.lost += 1;
        }
        for query in open {
            emit(&query, Some(end), out);
        }
    }

    /// The process ended, and its sockets were closed.
    pub(super) fn ended<S: EmitAll>(&mut self, upid: i32, ts: Ns, out: &mut Output<'_, S>) {
        let is_its = |open: &VecDeque<Open>| {
            let first = open.front();
            first.is_some_and(|open| open.thread.upid == Some(upid))
        };
        let mut left: Vec<Open> = Vec::new();
        self.sockets.retain(|_, open| {
            let is_its = is_its(open);
            if is_its {
                left.extend(open.drain(..));
            }
            !is_its
        });
        left.sort_unstable_by_key(|open| open.id);
        for open in &left {
            emit(open, Some((ts, "given_up")), out);
        }
    }

    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        self.rounds.remove(&thread.utid);
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let sockets = std::mem::take(&mut self.sockets);
        let mut open: Vec<Open> = sockets.into_values().flatten().collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            emit(open, None, out);
        }
    }
}

fn emit<S: EmitAll>(open: &Open, end: Option<(Ns, &'static str)>, out: &mut Output<'_, S>) {
    let ts_end = end.map(|(ts, _)| ts.max(open.ts));
    let thread = open.thread;
    out.sink.emit(DnsQueryRow {
        id: open.id,
        ts: open.ts,
        dur: ts_end.map(|end| end - open.ts),
        ts_end,
        server: open.server,
        outcome: end.map(|(_, outcome)| out.symbols.intern_static(outcome)),
        attempt: open.attempt,
        lookup: open.lookup.map(|(id, _)| id),
        host: open.lookup.and_then(|(_, host)| host),
        utid: (thread.utid >= 0).then_some(thread.utid),
        upid: thread.upid,
        tid: (thread.utid >= 0).then_some(thread.tid),
        pid: thread.pid,
        comm: thread.comm,
        cpu: open.cpu,
    });
}
