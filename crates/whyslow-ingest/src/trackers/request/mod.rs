//! Requests: complete ones from logs and load generators ([`imported`]), and those derived from
//! sockets: the requests and replies of each connection, and the threads that served them.
//!
//! **Exchanges.** On a connection accepted by this machine, an exchange lasts from the first read
//! with data to the last write before the next such read. On a connection initiated by this
//! machine, from the first write to the last read before the next write. The data itself is not
//! recorded, so pipelined requests cannot be separated: several at once are one exchange, and
//! handshakes are exchanges, too.
//!
//! **Concurrency.** A call is known when it returns, and by then the data that it sent may have
//! been read, and even replied to. So a request starts at the entry of its write, before any thread
//! can receive it; everything else is put together when an exchange has ended.
//!
//! **Lost events.** A lost reply and the next request make two exchanges one. One across a loss has a
//! duration only if a certain one with the same server was as long ([`super::pairing`]).
//!
//! **Other side.** Two sockets of this machine with each other's addresses are one connection. A
//! request that is read is the one in progress without a reply.

mod connection;
mod exchanging;
mod expected;
mod handover;
mod imported;
mod offset;
mod rows;
mod socket_op;
mod tcp;
#[cfg(test)]
mod tests;
mod traced;
mod workers;

use rustc_hash::FxHashMap;
use whyslow_model::event::{Endpoint, Loss, NetHeaders, TcpChange};
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Here, Output, ThreadRef};
use super::pairing::Pairings;
use super::syscall::SyscallTracker;
use connection::{Connection, Exchange, Key, Role};
use expected::Expected;
use imported::Imported;
use rows::{Ending, protocol, text};
pub(super) use socket_op::{Channel, Doing, Place, SocketOp, endpoint, plain};
use tcp::{Socks, Standing, TcpOutcome};
use traced::Traced;
use workers::Workers;

/// Maximum number of open connections; above it, all are dropped.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Packets up to this size may consist of headers only.
const HEADERS_MAX: i64 = 120;

#[derive(Debug, Default)]
pub(super) struct RequestTracker {
    connections: FxHashMap<i64, Connection>,
    /// Number of connections last used by each process.
    users: FxHashMap<i32, u32>,
    /// Local addresses of sockets that are not connected yet.
    bound: FxHashMap<i64, Endpoint>,
    socks: Socks,
    workers: Workers,
    expected: Expected,
    imported: Imported,
    traced: Traced,
    /// By side and server.
    pairings: Pairings<(Role, Option<Sym>)>,
    next_id: i64,
    next_turn: i64,
}

impl RequestTracker {
    /// Applies the socket operations of the event.
    #[inline]
    pub(super) fn socket_ops<S: EmitAll>(
        &mut self,
        syscall: &mut SyscallTracker,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        for op in syscall.socket_ops() {
            if let SocketOp::Open { socket, .. } = op {
                self.was_open(socket, op, out);
            } else if let Some(thread) = &here.thread {
                self.socket_op(op, (thread, here.ts), out);
            }
        }
    }

    /// Announces that other sources may show which threads served imported requests, and that
    /// several sources may report the same request, each from its side.
    pub(super) fn expect(&mut self, has_both: bool, has_traces: bool) {
        if has_both {
            self.expected.expect_both();
        }
        if has_traces {
            self.traced.expect();
        }
    }

    pub(super) fn lost(&mut self, loss: &Loss<'_>) {
        self.pairings.lost(loss);
    }

    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        self.workers.gone(thread);
    }

    /// A process ended, and its connections with it.
    pub(super) fn ended<S: EmitAll>(&mut self, upid: i32, ts: Ns, out: &mut Output<'_, S>) {
        if !self.users.contains_key(&upid) {
            return;
        }
        let is_of = |connection: &Connection| connection.user == Some(upid);
        let mut ended: Vec<i64> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_of(connection))
            .map(|(&socket, _)| socket)
            .collect();
        ended.sort_unstable();
        for socket in ended {
            self.remove(socket, Ending::Closed(ts), out);
        }
        self.users.remove(&upid);
    }

    /// State change of a TCP connection.
    pub(super) fn tcp<S: EmitAll>(
        &mut self,
        change: &TcpChange,
        here: &Here,
        syscall: &SyscallTracker,
        out: &mut Output<'_, S>,
    ) {
        let thread = here.thread.filter(|_| !here.interrupted);
        let connecting = match thread.and_then(|thread| syscall.doing(&thread)) {
            Some(Doing::Connect(socket, ts)) => Some((socket, ts)),
            _ => None,
        };
        match self
            .socks
            .event(change, connecting.map(|(socket, _)| socket), here.ts)
        {
            TcpOutcome::Nothing => {}
            TcpOutcome::Requested(socket) => {
                if let Some((thread, (_, ts))) = thread.as_ref().zip(connecting) {
                    self.requested(socket, (thread, ts), out);
                }
            }
            TcpOutcome::Established(socket, standing) => {
                if let Some(connection) = self.connections.get_mut(&socket) {
                    stands(connection, &standing, out);
                }
            }
            TcpOutcome::Closed(socket) => {
                let known = self.connections.get_mut(&socket);
                let Some(connection) = known else { return };
                connection.is_over = true;
                if connection.user.is_none() {
                    self.connections.remove(&socket);
                }
            }
            TcpOutcome::Full => out.anomalies.count(&stat::MAP_LIMIT, here.ts),
        }
    }

    /// A packet was received.
    pub(super) fn arrived(&mut self, headers: Option<NetHeaders>, bytes: i64, ts: Ns) {
        let Some(headers) = headers.filter(|_| bytes > HEADERS_MAX && !self.socks.is_empty())
        else {
            return;
        };
        let side = |address, port| Endpoint { address, port };
        let peer = side(headers.source, headers.source_port);
        let local = side(headers.destination, headers.destination_port);
        if let Some(socket) = self.socks.by_ends(local, peer)
            && let Some(connection) = self.connections.get_mut(&socket)
        {
            connection.arrived.get_or_insert(ts);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        self.give_up(out);
        self.expected.finish(&self.traced, out);
        self.traced.finish(out);
    }

    /// Writes everything that is open, and drops the connections.
    fn give_up<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let mut sockets: Vec<i64> = self.connections.keys().copied().collect();
        sockets.sort_unstable();
        // Nested client requests are needed by the request they belong to, so they are removed
        // last.
        for socket in &sockets {
            self.settle(*socket, Ending::Cut, out);
        }
        self.connections.clear();
        self.users.clear();
    }

    fn socket_op<S: EmitAll>(
        &mut self,
        op: SocketOp,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        match op {
            SocketOp::Accepted { socket, path, peer } => {
                self.workers.of(thread).woken = None;
                self.accepted(socket, (path, peer), ts, out);
            }
            SocketOp::Connected {
                socket,
                path,
                peer,
                ts: requested,
            } => {
                self.requested(socket, (thread, requested), out);
                if let Some(connection) = self.connections.get_mut(&socket) {
                    connection.peer = connection.peer.or(path);
                    connection.peer_end = connection.peer_end.or(peer);
                    if let Some(peer) = peer.filter(|_| connection.peer.is_none()) {
                        connection.peer = Some(text(peer, out));
                        connection.protocol = protocol(Some(peer), None, out);
                    } else if path.is_some() {
                        connection.protocol = protocol(None, path, out);
                    }
                }
                if let Some(local) = self.bound.remove(&socket) {
                    self.named(socket, local, out);
                }
            }
            SocketOp::Bound { socket, local } => {
                if self.bound.len() >= CONNECTIONS_MAX {
                    out.anomalies.count(&stat::MAP_LIMIT, ts);
                    self.bound.clear();
                }
                self.bound.insert(socket, local);
            }
            SocketOp::WriteBegan { place, bytes } => match place {
                Place::Socket(socket) => self.write_began(socket, (thread, ts), out),
                Place::Channel(channel) => self.put(channel, bytes, (thread, ts), out),
            },
            SocketOp::Wrote {
                socket,
                bytes,
                ts: begun,
            } => self.wrote(socket, bytes, (thread, begun, ts)),
            SocketOp::Read { place, bytes } => match place {
                Place::Socket(socket) => self.read(socket, bytes, (thread, ts), out),
                Place::Channel(channel) => self.took(channel, bytes, (thread, ts), out),
            },
            SocketOp::Open { .. } => {}
            SocketOp::Named { socket, local } => self.named(socket, local, out),
            SocketOp::Reset { socket } => {
                if let Some(connection) = self.connections.get_mut(&socket)
                    && let Some(open) = &mut connection.open
                {
                    open.is_reset = true;
                }
            }
            SocketOp::Closed { socket } => {
                self.bound.remove(&socket);
                let known = self.connections.get(&socket);
                let user = known.and_then(|connection| connection.user);
                // A process that passes a connection to a child closes its own copy.
                if user.is_some() && user == thread.upid {
                    self.remove(socket, Ending::Closed(ts), out);
                }
            }
            SocketOp::Waits { place, is_timed } => {
                if !self.connections.is_empty() {
                    self.workers.waits(thread, place, is_timed);
                }
            }
            SocketOp::Polled { ready, ts: begun } => {
                let worker = self.workers.of(thread);
                worker.current = None;
                worker.free = ts;
                worker.woken = worker.woken.filter(|woken| *woken >= begun && ready == 1);
            }
        }
    }

    fn enter<S: EmitAll>(&mut self, socket: i64, connection: Connection, out: &mut Output<'_, S>) {
        if self.connections.len() >= CONNECTIONS_MAX {
            let ts = connection
                .accepted
                .or(connection.connected.map(|(ts, _)| ts));
            out.anomalies.count(&stat::MAP_LIMIT, ts.unwrap_or(0));
            self.give_up(out);
        }
        self.connections.insert(socket, connection);
    }

    fn accepted<S: EmitAll>(
        &mut self,
        socket: i64,
        (path, peer): (Option<Sym>, Option<Endpoint>),
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        let mut connection = Connection::new(socket, Role::Server);
        connection.accepted = Some(ts);
        connection.local = path;
        connection.protocol = protocol(None, path, out);
        if let Some(peer) = peer {
            connection.peer_end = Some(peer);
            connection.peer = Some(text(peer, out));
            connection.client = Some(text(Endpoint { port: None, ..peer }, out));
            if let Some(standing) = self.socks.accepted(peer, socket) {
                stands(&mut connection, &standing, out);
            }
        }
        self.enter(socket, connection, out);
    }

    /// A snapshot reports a connection opened before the recording.
    fn was_open<S: EmitAll>(&mut self, socket: i64, op: SocketOp, out: &mut Output<'_, S>) {
        let SocketOp::Open {
            is_accepted,
            path,
            ends,
            ..
        } = op
        else {
            return;
        };
        let role = if is_accepted {
            Role::Server
        } else {
            Role::Client
        };
        let mut connection = Connection::new(socket, role);
        connection.is_old = true;
        connection.local = path;
        connection.protocol = protocol(None, path, out);
        if let Some((local, peer)) = ends {
            let standing = Standing {
                local,
                peer,
                established: None,
            };
            stands(&mut connection, &standing, out);
            if is_accepted {
                connection.client = Some(text(Endpoint { port: None, ..peer }, out));
            }
            self.socks.known(&standing, socket);
        }
        self.enter(socket, connection, out);
    }

    /// Its local address is known because the program set or queried it.
    fn named<S: EmitAll>(&mut self, socket: i64, local: Endpoint, out: &mut Output<'_, S>) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let Some(peer) = connection.peer_end else {
            return;
        };
        if connection.standing.is_none() {
            let standing = Standing {
                local,
                peer,
                established: None,
            };
            stands(connection, &standing, out);
            self.socks.known(&standing, socket);
        }
    }

    /// A connection was requested.
    fn requested<S: EmitAll>(
        &mut self,
        socket: i64,
        (thread, ts): (&ThreadRef, Ns),
        out: &mut Output<'_, S>,
    ) {
        if !self.connections.contains_key(&socket) {
            let mut connection = Connection::new(socket, Role::Client);
            connection.connected = Some((ts, ts));
            connection.connected_by = Some(thread.utid);
            connection.cause = self.workers.current(thread);
            self.enter(socket, connection, out);
        }
    }

    fn is_unanswered(&self, key: Key) -> bool {
        let open = self
            .connections
            .get(&key.socket)
            .and_then(|connection| connection.open.as_ref());
        open.is_some_and(|open| open.id == key.id && open.answer.is_none())
    }

    /// Whether a request is still being written.
    fn is_open_request(&self, socket: i64) -> bool {
        let open = self
            .connections
            .get(&socket)
            .and_then(|connection| connection.open.as_ref());
        open.is_some_and(|open| open.answer.is_none())
    }

    fn open(&mut self, key: Key) -> Option<&mut Exchange> {
        let open = self.connections.get_mut(&key.socket)?.open.as_mut()?;
        (open.id == key.id).then_some(&mut **open)
    }

    /// Nothing of a request was written.
    fn take_back(&mut self, socket: i64) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        let Some(open) = connection.open.take() else {
            return;
        };
        if let Some(parent) = open.parent.and_then(|parent| self.open(parent)) {
            parent.nested.retain(|nested| nested.key.id != open.id);
        }
    }

    fn used(&mut self, socket: i64, thread: &ThreadRef) {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return;
        };
        if connection.user == thread.upid {
            return;
        }
        let before = std::mem::replace(&mut connection.user, thread.upid);
        self.left(before);
        if let Some(upid) = thread.upid {
            *self.users.entry(upid).or_default() += 1;
        }
    }

    /// A process stops using one of its connections.
    fn left(&mut self, upid: Option<i32>) {
        if let Some(upid) = upid
            && let Some(count) = self.users.get_mut(&upid)
        {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&upid);
            }
        }
    }

    fn remove<S: EmitAll>(&mut self, socket: i64, ending: Ending, out: &mut Output<'_, S>) {
        self.settle(socket, ending, out);
        if let Some(connection) = self.connections.remove(&socket) {
            self.left(connection.user);
            if let Some(standing) = &connection.standing {
                self.socks.left(standing, socket);
            }
        }
    }
}

/// The kernel reported its addresses.
fn stands<S: EmitAll>(connection: &mut Connection, standing: &Standing, out: &mut Output<'_, S>) {
    connection.standing = Some(*standing);
    connection.local = Some(text(standing.local, out));
    connection.peer = Some(text(standing.peer, out));
    if let Some(((_, end), established)) = connection.connected.as_mut().zip(standing.established) {
        *end = established;
    }
    let server = match connection.role {
        Role::Client => standing.peer,
        Role::Server => standing.local,
    };
    connection.protocol = protocol(Some(server), None, out);
}
