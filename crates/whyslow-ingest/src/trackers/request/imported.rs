//! Complete requests from sources: logs, load generators, spans.

use std::borrow::Cow;
use std::net::SocketAddr;

use whyslow_model::tables::{EmitAll, RequestPhaseRow, RequestRow};
use whyslow_model::{Ns, Sym, stat};

use super::super::identity::Output;
use super::RequestTracker;
use crate::importers::requests::{Request, Role, Times};
use crate::limits;

/// State kept for these requests.
#[derive(Debug, Default)]
pub(super) struct Imported {
    next_phase: i64,
    /// Total size of distinct texts so far.
    text_bytes: usize,
}

impl RequestTracker {
    /// Processes a complete request from a source. A client request waits until it is known which
    /// request of this recording or of another source served it.
    pub(in crate::trackers) fn imported<S: EmitAll>(
        &mut self,
        request: &Request,
        out: &mut Output<'_, S>,
    ) {
        let row = self.imported.row(self.next_id, request, out);
        self.next_id += 1;
        self.imported.phases(request, &row, out);
        self.traced.add(&row, request.role, out);
        let mut row = Some(Box::new(row));
        if request.role == Role::Client {
            row = row.and_then(|row| self.expected.client(row, out));
        }
        if let Some(row) = row.and_then(|row| self.traced.hold(row, request.role, out)) {
            out.sink.emit(*row);
        }
    }
}

impl Imported {
    fn row<S: EmitAll>(
        &mut self,
        id: i64,
        request: &Request,
        out: &mut Output<'_, S>,
    ) -> RequestRow {
        let ts = request.ts;
        let mut text = |text: &str| self.text(text, ts, out);
        let (protocol, method) = (text(&request.protocol), text(&request.method));
        let (host, endpoint) = (text(&request.host), text(&request.endpoint));
        let (target, error) = (text(&request.target), text(&request.error));
        let client = text(&request.client);
        let (local, peer) = (text(&plain(&request.local)), text(&plain(&request.peer)));
        let times = &request.times;
        RequestRow {
            id,
            ts,
            dur: request.dur,
            ts_end: request.dur.map(|dur| ts.saturating_add(dur)),
            ts_intended: request.ts_intended,
            role: out.symbols.intern_static(request.role.name()),
            source: out.symbols.intern_static(request.source),
            protocol,
            method,
            host,
            endpoint,
            target,
            status: request.status,
            outcome: out.symbols.intern_static(request.outcome.name()),
            error,
            client,
            connection: request.connection,
            is_reused: request.is_reused,
            local,
            peer,
            worker: request.worker,
            seq: request.seq,
            bytes_sent: request.bytes_sent,
            bytes_received: request.bytes_received,
            queue_ns: times.queue,
            resolve_ns: times.resolve,
            connect_ns: times.connect,
            tls_ns: times.tls,
            send_ns: times.send,
            wait_ns: times.wait,
            receive_ns: times.receive,
            trace_high: request.trace.map(|trace| trace.0),
            trace_low: request.trace.map(|trace| trace.1),
            span: request.span,
            parent_span: request.parent_span,
            parent_request: None,
            server_request: None,
            joined_by: None,
            same_as: None,
            utid: None,
            upid: None,
            tid: request.tid,
            pid: request.pid,
            comm: None,
        }
    }

    fn phases<S: EmitAll>(
        &mut self,
        request: &Request,
        named: &RequestRow,
        out: &mut Output<'_, S>,
    ) {
        let mut at = request.ts;
        for (name, dur) in parts(&request.times) {
            // Brokers report it under their own phase name.
            if name == "queue" && request.role != Role::Client {
                continue;
            }
            let phase = out.symbols.intern_static(name);
            self.phase((phase, at, dur), named, out);
            at = at.saturating_add(dur);
        }
        // Other phases are in parallel to these, not after them.
        let mut at = request.ts;
        for phase in &request.phases {
            let Some(name) = self.text(&phase.name, request.ts, out) else {
                continue;
            };
            at = phase.ts.unwrap_or(at);
            self.phase((name, at, phase.dur), named, out);
            at = at.saturating_add(phase.dur);
        }
    }

    fn phase<S: EmitAll>(
        &mut self,
        (phase, ts, dur): (Sym, Ns, Ns),
        named: &RequestRow,
        out: &mut Output<'_, S>,
    ) {
        out.sink.emit(RequestPhaseRow {
            id: self.next_phase,
            ts,
            dur: Some(dur),
            ts_end: Some(ts.saturating_add(dur)),
            request: named.id,
            phase,
            endpoint: named.endpoint,
            client: named.client,
        });
        self.next_phase += 1;
    }

    /// `None` for an empty text, and above the limit for texts.
    fn text<S>(&mut self, text: &str, ts: Ns, out: &mut Output<'_, S>) -> Option<Sym> {
        if text.is_empty() {
            return None;
        }
        let end = text.floor_char_boundary(limits::REQUEST_TEXT_BYTES_MAX);
        if end < text.len() {
            out.anomalies.count(&stat::REQUEST_TEXT_CUT, ts);
        }
        let text = &text[..end];
        if let Some(known) = out.symbols.find(text) {
            return Some(known);
        }
        if self.text_bytes + text.len() > limits::REQUEST_TEXTS_BYTES_MAX {
            out.anomalies.count(&stat::REQUEST_TEXTS_LIMIT, ts);
            return None;
        }
        self.text_bytes += text.len();
        Some(out.symbols.intern(text))
    }
}

/// The standard phases that are present, in order.
fn parts(times: &Times) -> impl Iterator<Item = (&'static str, Ns)> {
    let parts = [
        ("queue", times.queue),
        ("resolve", times.resolve),
        ("connect", times.connect),
        ("tls", times.tls),
        ("send", times.send),
        ("wait", times.wait),
        ("receive", times.receive),
    ];
    parts
        .into_iter()
        .filter_map(|(name, dur)| Some((name, dur?)))
}

/// IPv4-mapped addresses in their IPv4 form.
fn plain(side: &str) -> Cow<'_, str> {
    match side.parse() {
        Ok(SocketAddr::V6(six)) => six.ip().to_ipv4_mapped().map_or(side.into(), |four| {
            Cow::Owned(SocketAddr::new(four.into(), six.port()).to_string())
        }),
        _ => side.into(),
    }
}
