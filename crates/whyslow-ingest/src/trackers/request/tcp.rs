//! Matches sockets of programs with connections of the kernel.
//!
//! The kernel identifies connections by the address of the socket structure, calls by descriptors.
//! A connection initiated here changes its state inside the connecting call; an accepted connection
//! is established before a thread accepts it, and is matched by its remote address.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::{Endpoint, NetAddress, TcpChange, TcpState};

use super::socket_op::plain;

/// Maximum number of remembered connections.
const STANDING_MAX: usize = 1 << 17;

/// An endpoint as a number.
type End = (u128, u16);
/// Local and remote end.
pub(super) type Ends = (End, End);

#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub(super) local: Endpoint,
    pub(super) peer: Endpoint,
    /// `None` if it was established before the recording.
    pub(super) established: Option<Ns>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sock {
    /// Number of the descriptor's socket, once known.
    socket: Option<i64>,
    standing: Option<Standing>,
    is_accepted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Socks {
    by_address: FxHashMap<u64, Sock>,
    /// Connections not accepted yet, by remote end: two with the same remote end have different
    /// local addresses.
    waiting: FxHashMap<End, Vec<u64>>,
    /// Sockets by both ends; `None` if two of them have the same ends, as in two network
    /// namespaces.
    by_ends: FxHashMap<Ends, Option<i64>>,
}

/// Result of a state change.
#[derive(Debug, Clone, Copy)]
pub(super) enum TcpOutcome {
    Nothing,
    /// The socket requested a connection.
    Requested(i64),
    Established(i64, Standing),
    Closed(i64),
    /// The limit was exceeded, and all connections were dropped.
    Full,
}

impl Socks {
    /// `connecting`: the socket that the thread is connecting in its current call.
    pub(super) fn event(
        &mut self,
        change: &TcpChange,
        connecting: Option<i64>,
        ts: Ns,
    ) -> TcpOutcome {
        match (change.from, change.to) {
            (_, TcpState::SynSent) => {
                let Some(socket) = connecting else {
                    return TcpOutcome::Nothing;
                };
                let sock = Sock {
                    socket: Some(socket),
                    ..Sock::default()
                };
                self.put(change.sock, sock, TcpOutcome::Requested(socket))
            }
            (TcpState::Listen | TcpState::Close, TcpState::SynRecv) => {
                let sock = Sock {
                    is_accepted: true,
                    ..Sock::default()
                };
                self.put(change.sock, sock, TcpOutcome::Nothing)
            }
            (_, TcpState::Established) => self.established(change, ts),
            (_, TcpState::Close) => self.closed(change.sock),
            _ => TcpOutcome::Nothing,
        }
    }

    /// A connection with that remote end was accepted.
    pub(super) fn accepted(&mut self, peer: Endpoint, socket: i64) -> Option<Standing> {
        let peer = end(peer);
        let waiting = self.waiting.get(&peer)?;
        // With several, it is unknown which.
        let &[address] = waiting.as_slice() else {
            return None;
        };
        self.waiting.remove(&peer);
        let sock = self.by_address.get_mut(&address)?;
        sock.socket = Some(socket);
        let standing = sock.standing?;
        self.enter(&standing, socket);
        Some(standing)
    }

    /// Both ends became known from another source than a state change.
    pub(super) fn known(&mut self, standing: &Standing, socket: i64) {
        if self.by_ends.len() < STANDING_MAX {
            self.enter(standing, socket);
        }
    }

    /// The socket is no longer used.
    pub(super) fn left(&mut self, standing: &Standing, socket: i64) {
        let ends = (end(standing.local), end(standing.peer));
        if self.by_ends.get(&ends) == Some(&Some(socket)) {
            self.by_ends.remove(&ends);
        }
    }

    /// The socket at the other end of a local connection.
    pub(super) fn opposite(&self, standing: &Standing) -> Option<i64> {
        let ends = (end(standing.peer), end(standing.local));
        *self.by_ends.get(&ends)?
    }

    pub(super) fn by_ends(&self, local: Endpoint, peer: Endpoint) -> Option<i64> {
        *self.by_ends.get(&(end(local), end(peer)))?
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_ends.is_empty()
    }

    fn put(&mut self, address: u64, sock: Sock, outcome: TcpOutcome) -> TcpOutcome {
        self.closed(address);
        if self.by_address.len() >= STANDING_MAX {
            *self = Self::default();
            return TcpOutcome::Full;
        }
        self.by_address.insert(address, sock);
        outcome
    }

    fn established(&mut self, change: &TcpChange, ts: Ns) -> TcpOutcome {
        let Some(sock) = self.by_address.get_mut(&change.sock) else {
            return TcpOutcome::Nothing;
        };
        let (Some(local), Some(peer)) = (change.local, change.peer) else {
            return TcpOutcome::Nothing;
        };
        let standing = Standing {
            local: plain(local),
            peer: plain(peer),
            established: Some(ts),
        };
        sock.standing = Some(standing);
        if sock.is_accepted {
            let waiting = self.waiting.entry(end(standing.peer)).or_default();
            waiting.push(change.sock);
            return TcpOutcome::Nothing;
        }
        let Some(socket) = sock.socket else {
            return TcpOutcome::Nothing;
        };
        self.enter(&standing, socket);
        TcpOutcome::Established(socket, standing)
    }

    fn enter(&mut self, standing: &Standing, socket: i64) {
        let ends = (end(standing.local), end(standing.peer));
        let known = self.by_ends.entry(ends).or_insert(Some(socket));
        if *known != Some(socket) {
            *known = None;
        }
    }

    fn closed(&mut self, address: u64) -> TcpOutcome {
        let Some(sock) = self.by_address.remove(&address) else {
            return TcpOutcome::Nothing;
        };
        if let Some(standing) = sock.standing {
            let peer = end(standing.peer);
            if let Some(waiting) = self.waiting.get_mut(&peer) {
                waiting.retain(|other| *other != address);
                if waiting.is_empty() {
                    self.waiting.remove(&peer);
                }
            }
            self.by_ends.remove(&(end(standing.local), peer));
        }
        sock.socket.map_or(TcpOutcome::Nothing, TcpOutcome::Closed)
    }
}

fn end(side: Endpoint) -> End {
    let address = match plain(side).address {
        NetAddress::V4(bytes) => std::net::Ipv4Addr::from(bytes).to_ipv6_mapped().to_bits(),
        NetAddress::V6(bytes) => u128::from_be_bytes(bytes),
    };
    (address, side.port.unwrap_or(0))
}
