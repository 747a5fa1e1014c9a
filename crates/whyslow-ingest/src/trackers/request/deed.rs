//! What calls did that requests are seen by, as the tracker of system calls tells it.

use whyslow_model::event::{Endpoint, NetAddress, SocketAddress};
use whyslow_model::{Ns, Sym};

use super::super::fd::Owner;

/// Something with two ends inside of this machine, through which threads hand work to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::trackers) enum Channel {
    /// By the descriptor, because they have no names: threads of one process.
    Eventfd(i64),
    Pipe(Sym),
    /// A pair of sockets, by its number.
    Unix(i64),
}

/// What was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum Place {
    Socket(i64),
    Channel(Channel),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum Deed {
    Accepted {
        socket: i64,
        /// What a socket of this machine alone is called.
        path: Option<Sym>,
        peer: Option<Endpoint>,
    },
    /// It is connected, or on its way. `ts` is when it was asked for.
    Connected {
        socket: i64,
        path: Option<Sym>,
        peer: Option<Endpoint>,
        ts: Ns,
    },
    /// It was there before the recording began. `ends` are this side and the other one.
    Open {
        socket: i64,
        is_accepted: bool,
        path: Option<Sym>,
        ends: Option<(Endpoint, Endpoint)>,
    },
    /// The program asked what this side is called.
    Named {
        socket: i64,
        local: Endpoint,
    },
    /// A call that writes was entered.
    WriteBegan {
        place: Place,
        bytes: Option<i64>,
    },
    /// It returned; with no bytes where it failed.
    Wrote {
        socket: i64,
        bytes: i64,
        ts: Ns,
    },
    /// A call that read returned with bytes, or at the end of what there is.
    Read {
        place: Place,
        bytes: i64,
    },
    /// The other side cut the connection off.
    Reset {
        socket: i64,
    },
    Closed {
        socket: i64,
    },
    /// A wait at an address begins: for anything but a mutex.
    Waits {
        place: (Owner, u64),
        /// No longer than so long.
        is_timed: bool,
    },
    /// A wait for whatever comes first was over, with so many things ready. `ts` is
    /// when it began.
    Polled {
        ready: i64,
        ts: Ns,
    },
}

/// What a thread is asleep for, or does, in its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trackers) enum Doing {
    /// Waits at that address to be told of something: no mutex.
    FutexWait(Owner, u64),
    /// Wakes who waits there.
    FutexWake(Owner, [Option<u64>; 2]),
    Read(Place),
    Poll,
    /// A socket, and since when.
    Connect(i64, Ns),
    Other,
}

/// The same address of either family as one.
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
