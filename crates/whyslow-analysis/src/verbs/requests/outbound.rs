//! `requests outbound`: outbound requests of threads while they serve a request: one row per
//! request and peer, with DNS lookup, connect, time to first byte, and total.
//!
//! They are derived from system calls on sockets. The connection on which the request arrived is
//! excluded, and so is the traffic of a lookup, which is reported as the lookup. A lookup belongs
//! to the peer with the address that it returned, otherwise to the peer that its thread connected
//! to next. With a window, only calls, lookups and connections that overlap it count: the requests
//! themselves may extend beyond it, and a snapshot of that window has no rows from there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{DnsLookupRow, TcpConnectionRow};
use whyslow_model::{Ns, Window};

use super::ports::protocol;
use super::stretches::{self, ByThread, Stretch};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::{REQUESTS, SYSCALLS};
use crate::query::Filter;
use crate::scan::Projection;
use crate::topic_state::unavailable;

const ROWS: usize = 50;

pub(crate) fn outbound(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let one = context.query.request.map(|id| FxHashSet::from_iter([id]));
    let one = one.map(|ids| with_server(context, ids)).transpose()?;
    let stretches = stretches::read(context, one.as_ref())?;
    let mut found = Found {
        by_thread: ByThread::new(&stretches),
        stretches: &stretches,
        requests: inbound_requests(context, &stretches)?,
        lookups: FxHashMap::default(),
        calls: BTreeMap::new(),
    };
    if let Some(hull) = found.by_thread.hull() {
        found.read_lookups(context, hull)?;
        found.read_calls(context, hull)?;
        found.read_connections(context, hull)?;
        found.place_lookups();
    }
    if !stretches.is_empty()
        && let Some(caveat) = unavailable(context, "outbound requests", SYSCALLS.table.name)
    {
        context.note(caveat);
    }
    let mut table = table();
    let mut calls: Vec<_> = found.calls.iter().collect();
    calls.index_sort_by_key(|(key, call)| (std::cmp::Reverse(call.length()), (*key).clone()));
    for ((request, peer), call) in calls {
        let of = found.requests.get(request);
        let endpoint = of.and_then(|of| of.endpoint.clone());
        table
            .rows
            .push(call.cells((*request, endpoint), peer.as_deref(), &stretches));
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

/// A client's request is represented by the one on its server.
fn with_server(
    context: &Context<'_>,
    mut ids: FxHashSet<i64>,
) -> Result<FxHashSet<i64>, AnalysisError> {
    ids.extend(super::chosen(context)?.and_then(|request| request.server));
    Ok(ids)
}

/// Data of a request.
struct Inbound {
    endpoint: Option<String>,
    /// The peer of its own connection.
    peer: Option<String>,
}

fn inbound_requests(
    context: &Context<'_>,
    stretches: &[Stretch],
) -> Result<FxHashMap<i64, Inbound>, AnalysisError> {
    let wanted: FxHashSet<i64> = stretches.iter().map(|stretch| stretch.request).collect();
    let mut projection = Projection::new(REQUESTS.table);
    let [id, endpoint, peer] = ["id", "endpoint", "peer"].map(|name| projection.need(name));
    let mut inbound = FxHashMap::default();
    if wanted.is_empty() {
        return Ok(inbound);
    }
    in_order(context.tables, &projection.scan(None), |batch| {
        let (id, endpoint, peer) = (id.ints(batch)?, endpoint.texts(batch)?, peer.texts(batch)?);
        let rows = 0..batch.num_rows() as u32;
        for row in rows.filter(|row| wanted.contains(&id.at(*row))) {
            let one = Inbound {
                endpoint: endpoint.get(row).map(str::to_owned),
                peer: peer.get(row).map(str::to_owned),
            };
            inbound.insert(id.at(row), one);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(inbound)
}

/// Whether a row is in the window of the query, if it has one.
fn is_selected(context: &Context<'_>, ts: Ns, ts_end: Option<Ns>) -> bool {
    let window = context.selected();
    window.is_none_or(|window| window.overlaps(ts, ts_end))
}

struct Lookup {
    stretch: usize,
    ts: Ns,
    ts_end: Ns,
    host: Option<String>,
    address: Option<String>,
}

/// Traffic with one peer for one request.
#[derive(Debug, Clone, Default)]
struct Call {
    stretch: usize,
    ts: Ns,
    ts_end: Ns,
    host: Option<String>,
    resolve_ns: Option<Ns>,
    connect_ns: Option<Ns>,
    /// Start of sending, while no response has been received.
    sent_at: Option<Ns>,
    first_byte_ns: Option<Ns>,
    wait_ns: Ns,
    exchanges: i64,
    sent: i64,
    received: i64,
    errors: i64,
}

struct Found<'s> {
    by_thread: ByThread<'s>,
    stretches: &'s [Stretch],
    requests: FxHashMap<i64, Inbound>,
    /// By thread, in order of start.
    lookups: FxHashMap<i64, Vec<Lookup>>,
    /// By request and peer.
    calls: BTreeMap<(i64, Option<String>), Call>,
}

/// A system call on a socket.
struct OnSocket<'b> {
    name: &'b str,
    ts: Ns,
    ts_end: Ns,
    bytes: i64,
    errno: Option<i64>,
}

impl Found<'_> {
    fn read_lookups(&mut self, context: &Context<'_>, hull: Window) -> Result<(), AnalysisError> {
        if !context.has(DnsLookupRow::TABLE.name) {
            return Ok(());
        }
        let mut projection = Projection::new(DnsLookupRow::TABLE);
        let [utid, ts, ts_end] = ["utid", "ts", "ts_end"].map(|name| projection.need(name));
        let [host, address] = ["host", "address"].map(|name| projection.need(name));
        let whole_end = context.recording_end();
        in_order(context.tables, &projection.scan(Some(hull)), |batch| {
            let [utid, ts, ts_end] = [utid.ints(batch)?, ts.ints(batch)?, ts_end.ints(batch)?];
            let (host, address) = (host.texts(batch)?, address.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let Some(utid) = utid.get(row) else { continue };
                if !is_selected(context, ts.at(row), ts_end.get(row)) {
                    continue;
                }
                if let Some(stretch) = self.by_thread.of(utid, ts.at(row)) {
                    self.lookups.entry(utid).or_default().push(Lookup {
                        stretch,
                        ts: ts.at(row),
                        ts_end: ts_end.get(row).unwrap_or(whole_end),
                        host: host.get(row).map(str::to_owned),
                        address: address.get(row).map(str::to_owned),
                    });
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn read_calls(&mut self, context: &Context<'_>, hull: Window) -> Result<(), AnalysisError> {
        let mut pass = context.pass_in(&SYSCALLS, &[], &Filter::default(), Some(hull))?;
        let names = ["utid", "ts", "ts_end", "bytes", "errno"];
        let [utid, ts, ts_end, bytes, errno] = names.map(|name| pass.projection.need(name));
        let [name, path, class] =
            ["name", "path", "fd_class"].map(|name| pass.projection.need(name));
        let whole_end = context.recording_end();
        in_order(context.tables, &pass.projection.scan(Some(hull)), |batch| {
            let [utid, ts, ts_end] = [utid.ints(batch)?, ts.ints(batch)?, ts_end.ints(batch)?];
            let [bytes, errno] = [bytes.ints(batch)?, errno.ints(batch)?];
            let [name, path, class] = [name.texts(batch)?, path.texts(batch)?, class.texts(batch)?];
            for row in 0..batch.num_rows() as u32 {
                let is_socket = matches!(class.get(row), Some("inet" | "inet6" | "unix"));
                let known = utid.get(row).zip(path.get(row)).zip(name.get(row));
                let Some(((utid, peer), name)) = known.filter(|_| is_socket) else {
                    continue;
                };
                if !is_selected(context, ts.at(row), ts_end.get(row)) {
                    continue;
                }
                let call = OnSocket {
                    name,
                    ts: ts.at(row),
                    ts_end: ts_end.get(row).unwrap_or(whole_end),
                    bytes: bytes.or_zero(row),
                    errno: errno.get(row),
                };
                self.add(utid, peer, &call);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn add(&mut self, utid: i64, peer: &str, on: &OnSocket<'_>) {
        let Some(stretch) = self.by_thread.of(utid, on.ts) else {
            return;
        };
        // A socket without an address has no peer yet.
        let is_unconnected = peer.starts_with("socket");
        let request = self.stretches[stretch].request;
        let own = self
            .requests
            .get(&request)
            .and_then(|inbound| inbound.peer.as_deref());
        let lookups = self.lookups.get(&utid).map_or(&[][..], Vec::as_slice);
        let before = lookups.partition_point(|lookup| lookup.ts <= on.ts);
        let is_of_lookup = lookups[..before]
            .last()
            .is_some_and(|lookup| on.ts < lookup.ts_end);
        let way = way_of(on.name);
        if is_unconnected || own == Some(peer) || is_of_lookup || way == Way::None {
            return;
        }
        let key = (request, Some(peer.to_owned()));
        let call = self.calls.entry(key).or_insert_with(|| Call {
            stretch,
            ts: on.ts,
            ..Call::default()
        });
        call.add(way, on);
    }

    /// A non-blocking connect returns before the connection is established: the connection table
    /// has the actual time.
    fn read_connections(
        &mut self,
        context: &Context<'_>,
        hull: Window,
    ) -> Result<(), AnalysisError> {
        if !context.has(TcpConnectionRow::TABLE.name) {
            return Ok(());
        }
        let mut projection = Projection::new(TcpConnectionRow::TABLE);
        let [utid, ts, connect] = ["utid", "ts", "connect_ns"].map(|name| projection.need(name));
        let [peer, ts_end] = ["peer", "ts_end"].map(|name| projection.need(name));
        in_order(context.tables, &projection.scan(Some(hull)), |batch| {
            let [utid, ts, connect] = [utid.ints(batch)?, ts.ints(batch)?, connect.ints(batch)?];
            let (peer, ts_end) = (peer.texts(batch)?, ts_end.ints(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let known = utid.get(row).zip(connect.get(row)).zip(peer.get(row));
                let Some(((utid, connect_ns), peer)) = known else {
                    continue;
                };
                if !is_selected(context, ts.at(row), ts_end.get(row)) {
                    continue;
                }
                let Some(stretch) = self.by_thread.of(utid, ts.at(row)) else {
                    continue;
                };
                let key = (self.stretches[stretch].request, Some(peer.to_owned()));
                if let Some(call) = self.calls.get_mut(&key) {
                    call.connect_ns = call.connect_ns.max(Some(connect_ns));
                    call.ts_end = call.ts_end.max(ts.at(row).saturating_add(connect_ns));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn place_lookups(&mut self) {
        let mut lookups: Vec<Lookup> = std::mem::take(&mut self.lookups)
            .into_values()
            .flatten()
            .collect();
        lookups.index_sort_by_ints(|lookup| [lookup.ts, lookup.stretch as i64, 0]);
        for lookup in lookups {
            let request = self.stretches[lookup.stretch].request;
            let of_request = (request, None)..(request + 1, None);
            let mut later: Vec<(&(i64, Option<String>), &mut Call)> = self
                .calls
                .range_mut(of_request)
                .filter(|(_, call)| call.ts >= lookup.ts_end && call.resolve_ns.is_none())
                .collect();
            later.index_sort_by_key(|((_, peer), call)| (!lookup.is_of(peer.as_deref()), call.ts));
            let resolve_ns = Some(lookup.ts_end - lookup.ts);
            if let Some((_, call)) = later.into_iter().next() {
                call.ts = call.ts.min(lookup.ts);
                (call.resolve_ns, call.host) = (resolve_ns, lookup.host);
                continue;
            }
            // No peer was contacted afterwards: the lookup gets a row of its own.
            let call = self.calls.entry((request, None)).or_insert_with(|| Call {
                stretch: lookup.stretch,
                ts: lookup.ts,
                host: lookup.host,
                ..Call::default()
            });
            call.ts_end = call.ts_end.max(lookup.ts_end);
            let known = call.resolve_ns.unwrap_or(0);
            call.resolve_ns = resolve_ns.map(|ns| ns.saturating_add(known));
        }
    }
}

impl Lookup {
    fn is_of(&self, peer: Option<&str>) -> bool {
        let ip = peer
            .and_then(|peer| peer.rsplit_once(':'))
            .map(|(ip, _)| ip);
        let ip = ip.map(|ip| ip.trim_matches(['[', ']']));
        ip.is_some() && ip == self.address.as_deref()
    }
}

/// What a call does on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Connect,
    Send,
    Receive,
    None,
}

fn way_of(name: &str) -> Way {
    match name {
        "connect" => Way::Connect,
        "write" | "writev" | "sendto" | "sendmsg" | "sendmmsg" | "send" | "sendfile"
        | "sendfile64" => Way::Send,
        "read" | "readv" | "recvfrom" | "recvmsg" | "recvmmsg" | "recv" => Way::Receive,
        _ => Way::None,
    }
}

const EAGAIN: i64 = 11;
const EINPROGRESS: i64 = 115;

impl Call {
    fn length(&self) -> Ns {
        self.ts_end - self.ts
    }

    fn add(&mut self, way: Way, on: &OnSocket<'_>) {
        self.ts_end = self.ts_end.max(on.ts_end);
        let is_error = on
            .errno
            .is_some_and(|errno| ![EAGAIN, EINPROGRESS].contains(&errno));
        self.errors += i64::from(is_error);
        match way {
            Way::Connect => {
                self.connect_ns = Some(self.connect_ns.unwrap_or(0) + (on.ts_end - on.ts));
            }
            Way::Send => {
                self.sent = self.sent.saturating_add(on.bytes);
                self.sent_at.get_or_insert(on.ts);
            }
            Way::Receive if on.bytes > 0 => {
                self.received = self.received.saturating_add(on.bytes);
                if let Some(sent_at) = self.sent_at.take() {
                    let wait = on.ts_end - sent_at;
                    self.exchanges += 1;
                    self.wait_ns = self.wait_ns.saturating_add(wait);
                    self.first_byte_ns.get_or_insert(wait);
                }
            }
            Way::Receive | Way::None => {}
        }
    }

    fn cells(
        &self,
        (request, endpoint): (i64, Option<String>),
        peer: Option<&str>,
        stretches: &[Stretch],
    ) -> Vec<Value> {
        let stretch = &stretches[self.stretch];
        vec![
            format!("request:{request}").into(),
            endpoint.into(),
            self.ts.into(),
            peer.into(),
            self.host.clone().into(),
            peer.and_then(protocol).into(),
            self.resolve_ns.into(),
            self.connect_ns.into(),
            self.first_byte_ns.into(),
            (self.exchanges > 0).then_some(self.wait_ns).into(),
            self.length().into(),
            self.exchanges.into(),
            self.sent.into(),
            self.received.into(),
            self.errors.into(),
            stretch.comm.as_deref().into(),
            stretch.tid.into(),
        ]
    }
}

fn table() -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("request", "request", Measure::Id),
        column("endpoint", "endpoint", Measure::Text).priority(1),
        column("ts_ns", "start", Measure::Time).priority(4),
        column("peer", "peer", Measure::Text),
        column("host", "host", Measure::Text)
            .priority(1)
            .sparse(true),
        column("protocol", "likely protocol", Measure::Text).priority(2),
        column("resolve_ns", "lookup", Measure::Duration),
        column("connect_ns", "connect", Measure::Duration),
        column("first_byte_ns", "first byte", Measure::Duration),
        column("wait_ns", "wait", Measure::Duration).priority(2),
        column("total_ns", "total", Measure::Duration),
        column("exchanges", "exchanges", Measure::Count).priority(3),
        column("sent_bytes", "sent", Measure::Bytes).priority(5),
        column("received_bytes", "received", Measure::Bytes).priority(5),
        column("errors", "errors", Measure::Count).priority(4),
        column("comm", "thread", Measure::Text).priority(3),
        column("tid", "tid", Measure::Count).priority(3),
    ];
    AnswerTable::new("outbound", "outbound requests", columns)
}
