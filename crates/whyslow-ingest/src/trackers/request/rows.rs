//! Converts ended exchanges to rows.

use whyslow_model::event::Endpoint;
use whyslow_model::tables::{EmitAll, RequestRow, RequestThreadRow};
use whyslow_model::{Ns, Sym};

use super::super::identity::Output;
use super::super::net::write_address;
use super::RequestTracker;
use super::connection::{Connection, Exchange, Role, Turn, handed_on};
use super::workers::Edge;

/// A connection that was used within this time was opened for that use.
const CONNECTED_FOR_NS: Ns = 1_000_000;

/// Ports that are reserved for one protocol, and the names of Unix sockets.
const PROTOCOLS: [(u16, &str, &str); 5] = [
    (5432, "/.s.PGSQL.", "postgresql"),
    (3306, "/mysqld.sock", "mysql"),
    (6379, "/redis.sock", "redis"),
    (11211, "/memcached.sock", "memcached"),
    (9092, "/kafka.sock", "kafka"),
];

/// Why an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Next,
    /// The connection was closed at this time.
    Closed(Ns),
    /// The recording ended.
    Cut,
}

/// Protocol of an endpoint, if it is certain.
pub(super) fn protocol<S: EmitAll>(
    server: Option<Endpoint>,
    path: Option<Sym>,
    out: &Output<'_, S>,
) -> Option<&'static str> {
    let port = server.and_then(|server| server.port);
    let path = path.map(|path| out.symbols.get(path));
    let found = PROTOCOLS.iter().find(|(known, name, _)| {
        port == Some(*known) || path.is_some_and(|path| path.contains(name))
    });
    found.map(|(_, _, protocol)| *protocol)
}

pub(super) fn text<S: EmitAll>(side: Endpoint, out: &mut Output<'_, S>) -> Sym {
    let mut text = String::new();
    write_address(&mut text, side.address, side.port);
    out.symbols.intern(&text)
}

impl RequestTracker {
    /// The open exchange of a connection ended: writes it.
    pub(super) fn settle<S: EmitAll>(
        &mut self,
        socket: i64,
        ending: Ending,
        out: &mut Output<'_, S>,
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let Some(mut open) = connection.open.take() else {
            return;
        };
        let mut row = Box::new(row(connection, &open, ending, out));
        if let (Some(_), Some(ts_end)) = (row.dur, row.ts_end) {
            let server = match connection.role {
                Role::Client => row.peer,
                Role::Server => row.local,
            };
            let kind = (connection.role, server);
            let pairing = self.pairings.judge(kind, &[None], (row.ts, ts_end));
            row.dur = row.dur.filter(|_| pairing.has_duration());
        }
        let mut row = Some(row);
        connection.done = connection.done.saturating_add(1);
        match connection.role {
            Role::Server => {
                if let Some((first, _)) = open.answer {
                    row = row.and_then(|row| self.expected.served(row, first, out));
                }
                self.gather(&mut open);
                // Includes what was learned about their wait addresses since then.
                let workers = &self.workers;
                open.edges
                    .retain(|edge| edge.waited.is_none_or(|(_, place)| !workers.is_lock(place)));
                let turns = open.turns();
                for turn in &turns {
                    self.put_turn(open.id, turn, out);
                }
                if let Some(client) = open.other.and_then(|other| self.open(other)) {
                    client.chain = turns;
                }
            }
            Role::Client => {
                if let Some(row) = &mut row {
                    row.same_as = self.expected.same_as(row);
                }
                let chain = self.chain(&open);
                let id = open.id;
                if let Some(parent) = open.parent.and_then(|parent| self.open(parent))
                    && let Some(nested) = parent.nested.iter_mut().find(|it| it.key.id == id)
                {
                    nested.chain = chain;
                }
            }
        }
        if let Some(row) = row {
            out.sink.emit(*row);
        }
    }

    /// The threads on the other side of a client request.
    fn chain(&mut self, client: &Exchange) -> Vec<Turn> {
        if !client.chain.is_empty() {
            return client.chain.clone();
        }
        let other = client.other.and_then(|other| self.open(other));
        other.map(|other| other.turns()).unwrap_or_default()
    }

    /// Converts client requests to other servers into handovers there and back.
    fn gather(&mut self, open: &mut Exchange) {
        for nested in std::mem::take(&mut open.nested) {
            let Some(answered) = nested.answered else {
                continue;
            };
            let mut chain = nested.chain;
            if chain.is_empty() {
                let key = nested.key;
                let connection = self.connections.get_mut(&key.socket);
                let taken = connection.and_then(|connection| connection.open.take());
                if let Some(client) = &taken
                    && client.id == key.id
                {
                    chain = self.chain(client);
                }
                if let Some(connection) = self.connections.get_mut(&key.socket) {
                    connection.open = taken;
                }
            }
            let is_same = nested.requested.thread.utid == answered.thread.utid;
            if !chain.is_empty() || !is_same {
                let edges: Vec<Edge> = handed_on(&chain, nested.requested, answered);
                open.edges.extend(edges);
            }
        }
    }

    fn put_turn<S: EmitAll>(&mut self, request: i64, turn: &Turn, out: &mut Output<'_, S>) {
        let thread = &turn.thread;
        let row = RequestThreadRow {
            id: self.next_turn,
            ts: turn.ts,
            dur: Some(turn.ts_end.saturating_sub(turn.ts)),
            ts_end: Some(turn.ts_end),
            request,
            received_by: out.symbols.intern_static(turn.way.name()),
            from_utid: turn.from.map(|from| from.utid),
            is_shared: turn.is_shared,
            utid: thread.utid,
            upid: thread.upid,
            tid: thread.tid,
            pid: thread.pid,
            comm: thread.comm,
        };
        self.next_turn += 1;
        out.sink.emit(row);
    }
}

fn row<S: EmitAll>(
    connection: &Connection,
    open: &Exchange,
    ending: Ending,
    out: &mut Output<'_, S>,
) -> RequestRow {
    let is_client = connection.role == Role::Client;
    let ts_end = open.answer.map(|(_, last)| last);
    let ts_end = ts_end.or_else(|| gave_up(connection, ending));
    let thread = open.begun.thread;
    let connected = connected_for(connection, open);
    let ts = connected.map_or(open.ts, |(requested, _)| requested);
    let sent = open.sent.filter(|_| is_client);
    let first = open.answer.map(|(first, _)| first).filter(|_| is_client);
    let symbols = &mut *out.symbols;
    RequestRow {
        id: open.id,
        ts,
        dur: ts_end.map(|end| end.saturating_sub(ts)),
        ts_end,
        ts_intended: None,
        role: symbols.intern_static(if is_client { "client" } else { "server" }),
        source: symbols.intern_static("socket"),
        protocol: connection.protocol.map(|name| symbols.intern_static(name)),
        method: None,
        host: None,
        endpoint: None,
        target: None,
        status: None,
        outcome: symbols.intern_static(outcome(open, ending)),
        error: None,
        client: connection.client,
        connection: Some(connection.number),
        is_reused: is_reused(connection),
        local: connection.local,
        peer: connection.peer,
        worker: None,
        seq: None,
        bytes_sent: Some(open.bytes_sent),
        bytes_received: Some(open.bytes_received),
        queue_ns: open.queue_ns,
        resolve_ns: None,
        connect_ns: connected.map(|(requested, end)| end.saturating_sub(requested)),
        tls_ns: None,
        send_ns: sent.map(|sent| sent.saturating_sub(open.ts)),
        // The reply may arrive before the sending call returns.
        wait_ns: sent
            .zip(first)
            .map(|(sent, first)| first.saturating_sub(sent).max(0)),
        receive_ns: first
            .zip(ts_end)
            .map(|(first, end)| end.saturating_sub(first)),
        trace_high: None,
        trace_low: None,
        span: None,
        parent_span: None,
        parent_request: open.parent.map(|parent| parent.id),
        server_request: open.other.map(|other| other.id).filter(|_| is_client),
        joined_by: open
            .other
            .filter(|_| is_client)
            .map(|_| symbols.intern_static("connection")),
        same_as: None,
        utid: Some(thread.utid),
        upid: thread.upid,
        tid: Some(thread.tid),
        pid: thread.pid,
        comm: thread.comm,
    }
}

/// When a client stopped waiting for the reply to its last request. Data that is only sent, such as a
/// log, has no reply: there has to have been one before, or the protocol has to have replies.
fn gave_up(connection: &Connection, ending: Ending) -> Option<Ns> {
    let Ending::Closed(ts) = ending else {
        return None;
    };
    let has_replies = connection.done > 0 || connection.protocol.is_some();
    (connection.role == Role::Client && has_replies).then_some(ts)
}

/// Times of the connection request and its completion, if it was made for this exchange.
fn connected_for(connection: &Connection, open: &Exchange) -> Option<(Ns, Ns)> {
    let is_by_same = connection.connected_by == Some(open.begun.thread.utid);
    let standing = connection.standing?;
    let is_first = connection.done == 0 && standing.established.is_some();
    connection.connected.filter(|(_, end)| {
        let since = open.ts.saturating_sub(*end);
        is_by_same && is_first && (0..=CONNECTED_FOR_NS).contains(&since)
    })
}

fn outcome(open: &Exchange, ending: Ending) -> &'static str {
    match ending {
        _ if open.is_reset => "reset",
        Ending::Closed(_) if open.answer.is_none() => "closed",
        Ending::Next | Ending::Closed(_) | Ending::Cut => "unknown",
    }
}

/// Uses before the recording are unknown.
fn is_reused(connection: &Connection) -> Option<bool> {
    let is_known = connection.done > 0 || !connection.is_old;
    is_known.then_some(connection.done > 0)
}
