//! Requests served on this machine, by the importer's definition (`trackers/request`): on a
//! connection that this machine accepted, a request lasts from the first read that returned bytes
//! to the last write before the next such read.
//!
//! **Order.** Records arrive per CPU through separate rings, so a response may arrive before its
//! request. Operations are buffered ([`SocketOp`]) until all records up to a time have arrived
//! ([`Served::settle`]), and then processed in time order. Rejected: a state machine that accepts
//! any order, because a late read may start a request or belong to the previous one.
//!
//! **Descriptors.** Accepted connections are those returned by `accept` and those listed as
//! accepted by a snapshot. They are followed through copies, forks and closes. A process that calls
//! exec starts without connections, because no record reports which descriptors it keeps; those,
//! and descriptors received through a socket, are listed by the next snapshot. To limit the cost,
//! only calls of processes that listen or have such a descriptor are examined.
//!
//! **What does not count.** Sockets of services that push messages, or accept them without a reply
//! (`socket_ops::ONE_WAY`). Responses to reads whose records are no longer kept:
//! on a connection where one side writes at any time, a write is unrelated to the last read.

mod socket_ops;

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::spool::{Kind, Record, records};
use whyslow_model::syscall::Abi;

use crate::raw::Raw;
use socket_ops::{Class, Classes, SocketOp, What};

/// Beyond this number all connections are dropped: the next snapshot lists the open ones.
const CONNECTIONS_MAX: usize = 1 << 16;
const PROCESSES_MAX: usize = 1 << 16;
/// When this many operations are buffered, the older half is processed, complete or not.
const OPS_MAX: usize = 1 << 16;
/// The children of a process with more descriptors do not inherit them.
const INHERITED_MAX: usize = 256;

/// What a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    Connection { id: u32, since: u64 },
    OneWay,
}

/// The last request of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    /// Inode number of its socket; 0 if unknown.
    number: u64,
    descriptors: u32,
    /// Time of the first read and its thread; 0 before the first.
    started: u64,
    reader: (i32, i32),
    is_answered: bool,
    /// Was reported, or never will be.
    is_done: bool,
}

/// A slow request, with its duration so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) ts: u64,
    pub(super) took: u64,
    /// Process and thread that wrote the response; without a response, that read the request.
    pub(super) thread: (i32, i32),
}

#[derive(Debug)]
pub(super) struct Served {
    classes: Classes,
    /// Shorter requests never count, nor do those that started more than `kept` ago.
    least: u64,
    kept: u64,
    /// Processes whose calls are examined.
    known: FxHashSet<i32>,
    waiting: Vec<SocketOp>,
    /// Everything up to this time was processed.
    settled: u64,
    processes: FxHashMap<i32, FxHashMap<i32, Descriptor>>,
    connections: FxHashMap<u32, Connection>,
    by_number: FxHashMap<u64, u32>,
    next_id: u32,
    slow: Vec<Slow>,
}

impl Served {
    pub(super) fn new(abi: Abi, kept: u64) -> Self {
        Self {
            classes: Classes::new(abi),
            least: u64::MAX,
            kept,
            known: FxHashSet::default(),
            waiting: Vec::new(),
            settled: 0,
            processes: FxHashMap::default(),
            connections: FxHashMap::default(),
            by_number: FxHashMap::default(),
            next_id: 0,
            slow: Vec::new(),
        }
    }

    /// Reports requests of at least this duration.
    pub(super) fn count_from(&mut self, longer_ns: u64) {
        self.least = self.least.min(longer_ns);
    }

    /// A call has returned.
    #[inline]
    pub(super) fn returned(&mut self, raw: Raw<'_>, is_compat: bool) {
        let class = self.classes.of(raw, is_compat);
        if class == Class::Nothing {
            return;
        }
        if matches!(class, Class::Listen | Class::Accept) {
            self.know(raw.pid());
        } else if !self.known.contains(&raw.pid()) {
            return;
        }
        for op in socket_ops::of_call(class, raw).into_iter().flatten() {
            self.wait(op);
        }
    }

    fn wait(&mut self, op: SocketOp) {
        if self.waiting.len() >= OPS_MAX {
            self.waiting.sort_by_key(|op| op.ts);
            let until = self.waiting[OPS_MAX / 2].ts;
            self.settle(until);
        }
        self.waiting.push(op);
    }

    fn know(&mut self, pid: i32) {
        if self.known.len() >= PROCESSES_MAX {
            self.forget();
        }
        self.known.insert(pid);
    }

    fn forget(&mut self) {
        self.known.clear();
        self.processes.clear();
        self.connections.clear();
        self.by_number.clear();
    }

    /// A process or thread starts, calls exec or exits.
    pub(super) fn lived(&mut self, raw: Raw<'_>) {
        const FORK: u16 = Kind::Fork as u16;
        const EXEC: u16 = Kind::Exec as u16;
        const EXIT: u16 = Kind::Exit as u16;
        let pid = raw.pid();
        if !self.known.contains(&pid) {
            return;
        }
        let what = match raw.kind() {
            FORK if raw.i32(4) != pid => {
                let child = raw.i32(4);
                self.know(child);
                What::Forked { child }
            }
            EXEC => What::Began,
            EXIT if raw.tid() == pid => What::Ended,
            _ => return,
        };
        self.wait(SocketOp::of(raw, -1, what));
    }

    /// Part of a snapshot.
    pub(super) fn snapshot(&mut self, payload: &[u8], is_own: impl Fn(i32) -> bool) {
        for (_, record) in records(payload) {
            let Ok((head, Record::Fd { fd, path, .. })) = record else {
                continue;
            };
            let Some((what, number)) =
                socket_ops::from_snapshot(path).filter(|_| !is_own(head.pid))
            else {
                continue;
            };
            self.know(head.pid);
            let Some(what) = what else { continue };
            // Operations after the snapshot are already processed and will not be seen again.
            if head.ts < self.settled && !is_still(head.pid, fd, number) {
                continue;
            }
            self.wait(SocketOp {
                ts: head.ts.max(self.settled),
                pid: head.pid,
                tid: head.pid,
                fd,
                what,
            });
        }
    }

    /// All records up to this time have arrived.
    pub(super) fn settle(&mut self, until: u64) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|op| op.ts);
        let end = waiting.partition_point(|op| op.ts <= until);
        for op in waiting.drain(..end) {
            self.go_through(op);
        }
        self.waiting = waiting;
        self.settled = self.settled.max(until);
    }

    /// Records were lost: a write may be unrelated to the last known read.
    pub(super) fn lose(&mut self) {
        self.waiting
            .retain(|op| !matches!(op.what, What::Read | What::Wrote));
        for connection in self.connections.values_mut() {
            connection.started = 0;
        }
    }

    /// Slow requests since the last call.
    pub(super) fn take_slow(&mut self) -> Vec<Slow> {
        std::mem::take(&mut self.slow)
    }

    /// Requests without a response that were read before `since`, each reported once, with the
    /// reading thread.
    pub(super) fn unanswered(&mut self, now: u64, since: u64) -> Vec<Slow> {
        let (least, kept) = (self.least, self.kept);
        let mut slow = Vec::new();
        for connection in self.connections.values_mut() {
            let open = connection.started > 0 && !connection.is_answered && !connection.is_done;
            let took = now.saturating_sub(connection.started);
            if !open || connection.started > since || took < least {
                continue;
            }
            connection.is_done = true;
            if took < kept {
                slow.push(Slow {
                    ts: now,
                    took,
                    thread: connection.reader,
                });
            }
        }
        slow.sort_by_key(|slow| (std::cmp::Reverse(slow.took), slow.thread));
        slow
    }

    fn go_through(&mut self, op: SocketOp) {
        let SocketOp { pid, fd, ts, .. } = op;
        match op.what {
            What::Read => self.read(op),
            What::Wrote => self.wrote(op),
            What::Accepted { listener } => {
                let of = self.descriptor(pid, listener);
                self.close(pid, fd, u64::MAX);
                if of != Some(Descriptor::OneWay) {
                    let id = self.connection(0);
                    self.lead(pid, fd, (id, ts));
                }
            }
            What::Open { number } => self.open(op, number),
            What::OneWay => {
                self.close(pid, fd, u64::MAX);
                let descriptors = self.processes.entry(pid).or_default();
                descriptors.insert(fd, Descriptor::OneWay);
            }
            What::Closed => self.close(pid, fd, ts),
            What::ClosedTo { last } => {
                let fds = self.processes.get(&pid).into_iter().flatten();
                let fds: Vec<i32> = fds.map(|(known, _)| *known).collect();
                for known in fds.into_iter().filter(|known| (fd..=last).contains(known)) {
                    self.close(pid, known, ts);
                }
            }
            What::Copied { to } => {
                let from = self.descriptor(pid, fd);
                if to != fd {
                    self.close(pid, to, u64::MAX);
                    self.copy(pid, to, from, ts);
                }
            }
            What::Forked { child } => {
                let all = self.processes.get(&pid);
                let all = all.filter(|all| all.len() <= INHERITED_MAX).cloned();
                for (fd, descriptor) in all.into_iter().flatten() {
                    self.copy(child, fd, Some(descriptor), ts);
                }
            }
            What::Began => self.end(pid),
            What::Ended => {
                self.end(pid);
                self.known.remove(&pid);
            }
        }
    }

    fn descriptor(&self, pid: i32, fd: i32) -> Option<Descriptor> {
        self.processes.get(&pid)?.get(&fd).copied()
    }

    fn of(&mut self, pid: i32, fd: i32) -> Option<&mut Connection> {
        match self.descriptor(pid, fd)? {
            Descriptor::Connection { id, .. } => self.connections.get_mut(&id),
            Descriptor::OneWay => None,
        }
    }

    fn read(&mut self, op: SocketOp) {
        let Some(connection) = self.of(op.pid, op.fd) else {
            return;
        };
        // More of the same request.
        if connection.started > 0 && !connection.is_answered {
            return;
        }
        connection.started = op.ts;
        connection.reader = (op.pid, op.tid);
        connection.is_answered = false;
        connection.is_done = false;
    }

    fn wrote(&mut self, op: SocketOp) {
        let (least, kept) = (self.least, self.kept);
        let Some(connection) = self.of(op.pid, op.fd) else {
            return;
        };
        // A greeting, or the response to a request read before the connection was known.
        if connection.started == 0 {
            return;
        }
        connection.is_answered = true;
        let took = op.ts.saturating_sub(connection.started);
        if connection.is_done || took < least {
            return;
        }
        connection.is_done = true;
        if took < kept {
            self.slow.push(Slow {
                ts: op.ts,
                took,
                thread: (op.pid, op.tid),
            });
        }
    }

    fn open(&mut self, op: SocketOp, number: u64) {
        match self.of(op.pid, op.fd) {
            Some(connection) if connection.number == number => return,
            // Accepted during the recording.
            Some(connection) if connection.number == 0 => {
                connection.number = number;
                if let Some(Descriptor::Connection { id, .. }) = self.descriptor(op.pid, op.fd) {
                    self.by_number.insert(number, id);
                }
                return;
            }
            _ => self.close(op.pid, op.fd, u64::MAX),
        }
        let known = self.by_number.get(&number).copied();
        let id = known.unwrap_or_else(|| self.connection(number));
        self.lead(op.pid, op.fd, (id, op.ts));
    }

    fn connection(&mut self, number: u64) -> u32 {
        if self.connections.len() >= CONNECTIONS_MAX {
            self.processes.clear();
            self.connections.clear();
            self.by_number.clear();
        }
        self.next_id = self.next_id.wrapping_add(1);
        let connection = Connection {
            number,
            ..Connection::default()
        };
        self.connections.insert(self.next_id, connection);
        if number > 0 {
            self.by_number.insert(number, self.next_id);
        }
        self.next_id
    }

    fn lead(&mut self, pid: i32, fd: i32, (id, since): (u32, u64)) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.descriptors += 1;
        let descriptors = self.processes.entry(pid).or_default();
        descriptors.insert(fd, Descriptor::Connection { id, since });
    }

    fn copy(&mut self, pid: i32, fd: i32, from: Option<Descriptor>, ts: u64) {
        match from {
            Some(Descriptor::Connection { id, .. }) => self.lead(pid, fd, (id, ts)),
            Some(Descriptor::OneWay) => {
                let descriptors = self.processes.entry(pid).or_default();
                descriptors.insert(fd, Descriptor::OneWay);
            }
            None => {}
        }
    }

    /// Unless the descriptor was opened after `ts`.
    fn close(&mut self, pid: i32, fd: i32, ts: u64) {
        let Some(descriptors) = self.processes.get_mut(&pid) else {
            return;
        };
        let id = match descriptors.get(&fd).copied() {
            Some(Descriptor::Connection { id, since }) if since <= ts => Some(id),
            Some(Descriptor::OneWay) => None,
            _ => return,
        };
        descriptors.remove(&fd);
        if descriptors.is_empty() {
            self.processes.remove(&pid);
        }
        if let Some(id) = id {
            self.left(id);
        }
    }

    /// A descriptor no longer refers to the connection.
    fn left(&mut self, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.descriptors -= 1;
        if connection.descriptors == 0 {
            let number = connection.number;
            self.connections.remove(&id);
            if self.by_number.get(&number) == Some(&id) {
                self.by_number.remove(&number);
            }
        }
    }

    fn end(&mut self, pid: i32) {
        for (_, descriptor) in self.processes.remove(&pid).into_iter().flatten() {
            if let Descriptor::Connection { id, .. } = descriptor {
                self.left(id);
            }
        }
    }
}

fn is_still(pid: i32, fd: i32, number: u64) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    link.is_ok_and(|link| link == Path::new(&format!("socket:[{number}]")))
}

#[cfg(test)]
mod tests;
