//! Socket operations that requests are derived from, as reported by the system call tracker.

use whyslow_model::event::{Endpoint, NetAddress, SocketAddress};
use whyslow_model::{Ns, Sym};

use super::super::fd::Owner;

/// A local object with two ends that threads use to hand over work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::trackers) enum Channel {
    /// By descriptor, because eventfds have no names: threads of one process.
    Eventfd(i64),
    Pipe(Sym),
    /// A socket pair, by its number.
    Unix(i64),
}

/// Object that was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum Place {
    Socket(i64),
    Channel(Channel),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum SocketOp {
    Accepted {
        socket: i64,
        /// Name of a Unix socket.
        path: Option<Sym>,
        peer: Option<Endpoint>,
    },
    /// Connected, or connecting. `ts` is the time of the request.
    Connected {
        socket: i64,
        path: Option<Sym>,
        peer: Option<Endpoint>,
        ts: Ns,
    },
    /// Opened before the recording. `ends` are the local and the remote end.
    Open {
        socket: i64,
        is_accepted: bool,
        path: Option<Sym>,
        ends: Option<(Endpoint, Endpoint)>,
    },
    /// The program set the local address, before connecting.
    Bound {
        socket: i64,
        local: Endpoint,
    },
    /// The program queried the local address.
    Named {
        socket: i64,
        local: Endpoint,
    },
    /// A write call was entered.
    WriteBegan {
        place: Place,
        bytes: Option<i64>,
    },
    /// It returned; with zero bytes if it failed.
    Wrote {
        socket: i64,
        bytes: i64,
        ts: Ns,
    },
    /// A read call returned with data, or at the end of the stream.
    Read {
        place: Place,
        bytes: i64,
    },
    /// The other side reset the connection.
    Reset {
        socket: i64,
    },
    Closed {
        socket: i64,
    },
    /// Start of a wait at a futex address, except for mutexes.
    Waits {
        place: (Owner, u64),
        /// With a timeout.
        is_timed: bool,
    },
    /// A wait for any event returned with this number of ready descriptors. `ts` is its start.
    Polled {
        ready: i64,
        ts: Ns,
    },
}

/// What a thread is doing in its system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum Doing {
    /// Waits at this address for a notification: not for a mutex.
    FutexWait(Owner, u64),
    /// Wakes threads that wait at these addresses.
    FutexWake(Owner, [Option<u64>; 2]),
    Read(Place),
    Poll,
    /// Connects a socket, since this time.
    Connect(i64, Ns),
    Other,
}

/// IPv4-mapped addresses in their IPv4 form.
pub(in crate::trackers) fn plain(end: Endpoint) -> Endpoint {
    let NetAddress::V6(bytes) = end.address else {
        return end;
    };
    match std::net::Ipv6Addr::from(bytes).to_ipv4_mapped() {
        Some(address) => Endpoint {
            address: NetAddress::V4(address.octets()),
            ..end
        },
        None => end,
    }
}

pub(in crate::trackers) fn endpoint(address: &SocketAddress<'_>) -> Option<Endpoint> {
    let (address, port) = match *address {
        SocketAddress::Inet { address, port } => (NetAddress::V4(address), port),
        SocketAddress::Inet6 { address, port } => (NetAddress::V6(address), port),
        SocketAddress::Unix { .. } | SocketAddress::Family(_) => return None,
    };
    Some(plain(Endpoint {
        address,
        port: Some(port),
    }))
}
