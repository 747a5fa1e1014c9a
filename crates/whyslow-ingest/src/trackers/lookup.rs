//! DNS lookups, from start to end.
//!
//! The source reports only the outermost lookup, so a thread is in at most one. The end includes
//! the start time and the name, so a lookup whose start was lost is complete nevertheless.

use std::net::{Ipv4Addr, Ipv6Addr};

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, NetAddress};
use whyslow_model::lookup::{Function, Outcome};
use whyslow_model::tables::{DnsLookupRow, EmitAll};
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Here, Output, ThreadRef};

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    function: Function,
    host: Option<Sym>,
    service: Option<Sym>,
    thread: Option<ThreadRef>,
    cpu: Option<i32>,
}

/// End of a lookup: result and time.
struct End {
    ts: Ns,
    outcome: Outcome,
    address: Option<NetAddress>,
}

#[derive(Debug, Default)]
pub(super) struct LookupTracker {
    /// By thread.
    open: FxHashMap<i32, Open>,
    next_id: i64,
}

impl LookupTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        match *body {
            Body::LookupBegin {
                function,
                host,
                service,
            } => {
                let mut open = self.opened((here.ts, function), here, (host, service), out);
                open.cpu = here.cpu;
                let Some(thread) = here.thread else {
                    // Its end could not be matched.
                    return emit(&open, None, out);
                };
                if let Some(left) = self.open.insert(thread.utid, open) {
                    out.anomalies.count(&stat::LOOKUP_NESTED, here.ts);
                    emit(&left, None, out);
                }
            }
            Body::LookupEnd {
                begun,
                function,
                host,
                service,
                outcome,
                address,
            } => {
                let known = here
                    .thread
                    .and_then(|thread| self.open.remove(&thread.utid));
                let mut open = match known {
                    // A late event was placed later than its time.
                    Some(open) if open.ts >= begun => open,
                    left => {
                        if let Some(left) = left {
                            out.anomalies.count(&stat::LOOKUP_NESTED, here.ts);
                            emit(&left, None, out);
                        }
                        self.opened((begun, function), here, (host, service), out)
                    }
                };
                // Snapshots report thread names, and may come later than the start.
                open.thread = here.thread.or(open.thread);
                // The text may not have been in memory at the start.
                open.host = open.host.or_else(|| host.map(|host| out.intern(host)));
                open.service = open
                    .service
                    .or_else(|| service.map(|service| out.intern(service)));
                let ts = here.ts;
                emit(
                    &open,
                    Some(End {
                        ts,
                        outcome,
                        address,
                    }),
                    out,
                );
            }
            _ => {}
        }
    }

    /// The lookup that a thread is in, and its host name.
    pub(super) fn of(&self, thread: &ThreadRef) -> Option<(i64, Option<Sym>)> {
        let open = self.open.get(&thread.utid)?;
        Some((open.id, open.host))
    }

    fn opened<S: EmitAll>(
        &mut self,
        (ts, function): (Ns, Function),
        here: &Here,
        (host, service): (Option<&[u8]>, Option<&[u8]>),
        out: &mut Output<'_, S>,
    ) -> Open {
        let id = self.next_id;
        self.next_id += 1;
        Open {
            id,
            ts,
            function,
            host: host.map(|host| out.intern(host)),
            service: service.map(|service| out.intern(service)),
            thread: here.thread,
            cpu: None,
        }
    }

    /// The thread ended, or executes another program: its lookup has no end.
    pub(super) fn left<S: EmitAll>(&mut self, thread: &ThreadRef, out: &mut Output<'_, S>) {
        if let Some(open) = self.open.remove(&thread.utid) {
            emit(&open, None, out);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            emit(open, None, out);
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // created for this call
fn emit<S: EmitAll>(open: &Open, end: Option<End>, out: &mut Output<'_, S>) {
    let end = end.as_ref();
    let result = end.map(|end| out.symbols.intern(&end.outcome.name()));
    let address = end.and_then(|end| end.address);
    let address = address.map(|address| {
        let text = match address {
            NetAddress::V4(address) => Ipv4Addr::from(address).to_string(),
            NetAddress::V6(address) => Ipv6Addr::from(address).to_string(),
        };
        out.symbols.intern(&text)
    });
    let function = out.symbols.intern_static(open.function.name());
    out.sink.emit(DnsLookupRow {
        id: open.id,
        ts: open.ts,
        dur: end.map(|end| end.ts.saturating_sub(open.ts)),
        ts_end: end.map(|end| end.ts),
        host: open.host,
        service: open.service,
        function,
        result,
        code: end.and_then(|end| end.outcome.number()),
        address,
        utid: open.thread.map(|thread| thread.utid),
        upid: open.thread.and_then(|thread| thread.upid),
        tid: open.thread.map(|thread| thread.tid),
        pid: open.thread.and_then(|thread| thread.pid),
        comm: open.thread.and_then(|thread| thread.comm),
        cpu: open.cpu,
    });
}
