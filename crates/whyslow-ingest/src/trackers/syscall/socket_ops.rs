//! Derives socket operations from system calls: see [`super::super::request`].

use whyslow_model::event::{Endpoint, NetAddress, SyscallArgs};
use whyslow_model::syscall::Op;

use super::super::fd::Owner;
use super::super::identity::ThreadRef;
use super::super::object::FdClass;
use super::super::request::{Channel, Doing, Place, SocketOp, endpoint};
use super::effect::{EINPROGRESS, Effect};
use super::{Pending, SyscallTracker, Target, failed_with};

/// `SOCK_STREAM`, and the mask for socket types.
const SOCK_STREAM: i32 = 1;
const SOCK_TYPE_MASK: i32 = 0xf;
const ECONNRESET: i64 = 104;
const EPIPE: i64 = 32;
/// Mask of the command without flags.
const FUTEX_CMD_MASK: i64 = 0x7f;
const FUTEX_WAIT: i64 = 0;
const FUTEX_WAIT_BITSET: i64 = 9;
/// Value of a contended mutex in every C library.
const MUTEX_CONTENDED: i64 = 2;

impl SyscallTracker {
    /// Socket operations of the event just processed.
    pub(in crate::trackers) fn socket_ops(&mut self) -> std::vec::Drain<'_, SocketOp> {
        self.socket_ops.drain(..)
    }

    /// What a thread is doing in its current call.
    pub(in crate::trackers) fn doing(&self, thread: &ThreadRef) -> Option<Doing> {
        let pending = self.threads.get(thread.index())?.pending.as_ref()?;
        Some(match pending.op {
            Op::Lock => futex(pending),
            Op::Read => pending
                .target
                .and_then(place)
                .map_or(Doing::Other, Doing::Read),
            Op::Wait => Doing::Poll,
            Op::Connect if self.calls.get(pending.called.meaning).effect == Effect::Connect => {
                let socket = pending.target.and_then(|target| target.socket);
                socket.map_or(Doing::Other, |socket| Doing::Connect(socket, pending.ts))
            }
            _ => Doing::Other,
        })
    }

    /// Start of the current call of a thread.
    pub(in crate::trackers) fn since(&self, thread: &ThreadRef) -> Option<whyslow_model::Ns> {
        let pending = self.threads.get(thread.index())?.pending.as_ref()?;
        Some(pending.ts)
    }

    /// A call was entered.
    pub(super) fn ops_begun(&mut self, pending: &Pending) {
        let target = match pending.op {
            Op::Write => pending.target,
            Op::ReadWrite => pending.target2,
            Op::Lock => {
                if let Doing::FutexWait(owner, address) = futex(pending) {
                    let is_timed = pending.numbers.timeout.is_some_and(|place| place != 0);
                    self.socket_ops.push(SocketOp::Waits {
                        place: (owner, address),
                        is_timed,
                    });
                }
                return;
            }
            _ => return,
        };
        if let Some(place) = target.and_then(place) {
            let bytes = pending.numbers.count;
            self.socket_ops.push(SocketOp::WriteBegan { place, bytes });
        }
    }

    /// A call returned, and its effects were applied.
    pub(super) fn ops_done(
        &mut self,
        pending: &Pending,
        owner: Owner,
        (ret, args): (Option<i64>, &SyscallArgs<'_>),
    ) {
        match pending.op {
            Op::Read => self.read(self.target_by_now(pending, owner), ret),
            Op::Write => self.wrote(pending, pending.target, ret),
            Op::ReadWrite => {
                self.read(pending.target, ret);
                self.wrote(pending, pending.target2, ret);
            }
            Op::Wait => {
                let ready = ret.unwrap_or(0);
                let ts = pending.ts;
                self.socket_ops.push(SocketOp::Polled { ready, ts });
            }
            Op::Open | Op::Connect | Op::Close | Op::Other => {
                self.other_done(pending, owner, (ret, args));
            }
            _ => {}
        }
    }

    /// The target of a call that was in progress when a snapshot reported its descriptor.
    fn target_by_now(&self, pending: &Pending, owner: Owner) -> Option<Target> {
        let target = pending.target?;
        let now = pending.numbers.fd.and_then(|fd| self.fds.get(owner, fd));
        let Some(now) = now.filter(|_| target.descriptor.is_none()) else {
            return Some(target);
        };
        Some(Target {
            object: now.object,
            descriptor: Some(now.id),
            socket: now.socket,
            ..target
        })
    }

    fn other_done(
        &mut self,
        pending: &Pending,
        owner: Owner,
        (ret, args): (Option<i64>, &SyscallArgs<'_>),
    ) {
        let new_fd = ret
            .and_then(|ret| i32::try_from(ret).ok())
            .filter(|fd| *fd >= 0);
        let socket = pending.target.and_then(|target| target.socket);
        let address = args.socket_address.as_ref();
        match self.calls.get(pending.called.meaning).effect {
            Effect::Socket => {
                let kind = pending
                    .numbers
                    .socket_type
                    .map(|kind| kind & SOCK_TYPE_MASK);
                if let (Some(SOCK_STREAM), Some(fd)) = (kind, new_fd) {
                    self.fds.set_socket(owner, fd);
                }
            }
            Effect::SocketPair => {
                if let Some(ends) = args.fds.filter(|_| ret == Some(0)) {
                    self.fds.set_pair(owner, ends);
                }
            }
            Effect::Accept => {
                let Some(socket) = new_fd.and_then(|fd| self.fds.set_socket(owner, fd)) else {
                    return;
                };
                let listener = pending.target.map(|target| target.object);
                let listener = listener.filter(|listener| listener.class == FdClass::Unix);
                self.socket_ops.push(SocketOp::Accepted {
                    socket,
                    path: listener.and_then(|listener| listener.path),
                    peer: address.and_then(endpoint),
                });
            }
            Effect::Connect if ret == Some(0) || failed_with(ret, EINPROGRESS) => {
                let unix = pending.named.filter(|named| named.class == FdClass::Unix);
                let Some(socket) = socket else { return };
                self.socket_ops.push(SocketOp::Connected {
                    socket,
                    path: unix.and_then(|unix| unix.path),
                    peer: pending.peer,
                    ts: pending.ts,
                });
            }
            Effect::Bind if ret == Some(0) => {
                let local = pending.peer.filter(|local| is_complete(*local));
                if let Some((socket, local)) = socket.zip(local) {
                    self.socket_ops.push(SocketOp::Bound { socket, local });
                }
            }
            Effect::Getsockname => {
                let local = address.and_then(endpoint).filter(|local| {
                    // A connecting socket may have none yet.
                    ret == Some(0) && local.port != Some(0)
                });
                if let Some((socket, local)) = socket.zip(local) {
                    self.socket_ops.push(SocketOp::Named { socket, local });
                }
            }
            Effect::Close => {
                if let Some(socket) = socket {
                    self.socket_ops.push(SocketOp::Closed { socket });
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, target: Option<Target>, ret: Option<i64>) {
        let (Some(target), Some(ret)) = (target, ret) else {
            return;
        };
        match (place(target), ret) {
            (Some(place), bytes @ 0..) => self.socket_ops.push(SocketOp::Read { place, bytes }),
            (Some(Place::Socket(socket)), ret) if ret == -ECONNRESET => {
                self.socket_ops.push(SocketOp::Reset { socket });
            }
            _ => {}
        }
    }

    fn wrote(&mut self, pending: &Pending, target: Option<Target>, ret: Option<i64>) {
        let Some(Place::Socket(socket)) = target.and_then(place) else {
            return;
        };
        let (bytes, ts) = (ret.unwrap_or(0).max(0), pending.ts);
        self.socket_ops.push(SocketOp::Wrote { socket, bytes, ts });
        if failed_with(ret, ECONNRESET) || failed_with(ret, EPIPE) {
            self.socket_ops.push(SocketOp::Reset { socket });
        }
    }
}

/// Whether an address is that of one socket: the kernel replaces a port of 0, and the address
/// `0.0.0.0` or `::`, when the socket connects.
fn is_complete(local: Endpoint) -> bool {
    let is_any = match local.address {
        NetAddress::V4(bytes) => bytes == [0; 4],
        NetAddress::V6(bytes) => bytes == [0; 16],
    };
    !is_any && local.port.is_some_and(|port| port != 0)
}

fn place(target: Target) -> Option<Place> {
    match target.socket {
        Some(socket @ 0..) => return Some(Place::Socket(socket)),
        Some(pair) => return Some(Place::Channel(Channel::Unix(pair))),
        None => {}
    }
    let named = target
        .object
        .path
        .filter(|_| target.object.reason.is_none());
    Some(Place::Channel(match target.object.class {
        FdClass::Eventfd => Channel::Eventfd(target.descriptor?),
        FdClass::Pipe => Channel::Pipe(named?),
        _ => return None,
    }))
}

fn futex(pending: &Pending) -> Doing {
    let numbers = &pending.numbers;
    let (Some(command), Some(address)) = (numbers.command, numbers.address) else {
        return Doing::Other;
    };
    let owner = Owner::of(&pending.thread);
    match command & FUTEX_CMD_MASK {
        // A wait for a mutex is for a resource held by another thread, not for work.
        FUTEX_WAIT if numbers.value == Some(MUTEX_CONTENDED) => Doing::Other,
        FUTEX_WAIT | FUTEX_WAIT_BITSET => Doing::FutexWait(owner, address),
        // WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAKE_BITSET
        1 | 3 | 4 | 5 | 10 => Doing::FutexWake(owner, [Some(address), numbers.address2]),
        _ => Doing::Other,
    }
}
