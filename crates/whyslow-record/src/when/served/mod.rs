//! Requests that are served here, as the importer tells them (`trackers/request`): at a connection that
//! this machine accepted, one runs from the first read that had bytes to the last write before the
//! next such read.
//!
//! **Order.** Each CPU's records come through a ring of their own, so that an answer may come before
//! what it answers. What matters of them is kept ([`Deed`]) until everything up to a moment has come
//! ([`Served::settle`]), and then gone through in order of time. Rejected: a state that bears any
//! order, because a read that comes late may begin a request or belong to the one before.
//!
//! **Descriptors.** Accepted are those that `accept` returned, and those that a snapshot tells so,
//! which were there before. They are followed through copies, forks and closes. A process that runs
//! another program is begun anew, because nobody tells which descriptors it keeps; what it keeps, and
//! what was sent through a socket, the next snapshot tells. To be cheap, calls are looked at only of
//! processes that listen, or have such a descriptor.
//!
//! **What does not count.** Sockets of services that tell without being asked, or take without an answer
//! (`deeds::ONE_WAY`). Answers to what was read so long ago that nothing of it is kept: on a connection
//! where one side writes whenever it likes, a write has nothing to do with the last read.

mod deeds;

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::spool::{Kind, Record, records};
use whyslow_model::syscall::Abi;

use crate::raw::Raw;
use deeds::{Class, Classes, Deed, What};

/// More of them than this are all forgotten: the next snapshot tells those that are open.
const CONNECTIONS_MAX: usize = 1 << 16;
const PROCESSES_MAX: usize = 1 << 16;
/// Of so many deeds that wait the older half is gone through, whatever has not come yet.
const DEEDS_MAX: usize = 1 << 16;
/// A process with more descriptors does not hand them to the children that it forks.
const INHERITED_MAX: usize = 256;

/// What a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    Connection { id: u32, since: u64 },
    OneWay,
}

/// The last request of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    /// Of its socket; 0 where it is not known.
    number: u64,
    descriptors: u32,
    /// When its first bytes were read, and by whom; 0 before the first.
    begun: u64,
    reader: (i32, i32),
    is_answered: bool,
    /// It was told, or never will be.
    is_done: bool,
}

/// A request that took so long, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) ts: u64,
    pub(super) took: u64,
    /// Process and thread that wrote the answer; of one without, that read the question.
    pub(super) thread: (i32, i32),
}

#[derive(Debug)]
pub(super) struct Served {
    classes: Classes,
    /// No request counts that was shorter, nor one that began so long before.
    least: u64,
    kept: u64,
    /// Whose calls matter.
    known: FxHashSet<i32>,
    waiting: Vec<Deed>,
    /// Up to then all was gone through.
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

    /// Requests count that take so long.
    pub(super) fn count_from(&mut self, longer_ns: u64) {
        self.least = self.least.min(longer_ns);
    }

    /// A call that has returned.
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
        for deed in deeds::of_call(class, raw).into_iter().flatten() {
            self.wait(deed);
        }
    }

    fn wait(&mut self, deed: Deed) {
        if self.waiting.len() >= DEEDS_MAX {
            self.waiting.sort_by_key(|deed| deed.ts);
            let until = self.waiting[DEEDS_MAX / 2].ts;
            self.settle(until);
        }
        self.waiting.push(deed);
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

    /// A process or thread begins, runs a program or ends.
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
        self.wait(Deed::of(raw, -1, what));
    }

    /// Part of a snapshot.
    pub(super) fn snapshot(&mut self, payload: &[u8], is_own: impl Fn(i32) -> bool) {
        for (_, record) in records(payload) {
            let Ok((head, Record::Fd { fd, path, .. })) = record else {
                continue;
            };
            let Some((what, number)) = deeds::told(path).filter(|_| !is_own(head.pid)) else {
                continue;
            };
            self.know(head.pid);
            let Some(what) = what else { continue };
            // What has happened to it since then is not asked again.
            if head.ts < self.settled && !is_still(head.pid, fd, number) {
                continue;
            }
            self.wait(Deed {
                ts: head.ts.max(self.settled),
                pid: head.pid,
                tid: head.pid,
                fd,
                what,
            });
        }
    }

    /// Everything until this moment has come.
    pub(super) fn settle(&mut self, until: u64) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|deed| deed.ts);
        let end = waiting.partition_point(|deed| deed.ts <= until);
        for deed in waiting.drain(..end) {
            self.go_through(deed);
        }
        self.waiting = waiting;
        self.settled = self.settled.max(until);
    }

    /// Records were lost: a write may have nothing to do with the last read that is known.
    pub(super) fn lose(&mut self) {
        self.waiting
            .retain(|deed| !matches!(deed.what, What::Read | What::Wrote));
        for connection in self.connections.values_mut() {
            connection.begun = 0;
        }
    }

    /// Requests that took too long, since the last time.
    pub(super) fn take_slow(&mut self) -> Vec<Slow> {
        std::mem::take(&mut self.slow)
    }

    /// Requests without an answer that were read before `since`, which count once, and by whom.
    pub(super) fn unanswered(&mut self, now: u64, since: u64) -> Vec<Slow> {
        let (least, kept) = (self.least, self.kept);
        let mut slow = Vec::new();
        for connection in self.connections.values_mut() {
            let open = connection.begun > 0 && !connection.is_answered && !connection.is_done;
            let took = now.saturating_sub(connection.begun);
            if !open || connection.begun > since || took < least {
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

    fn go_through(&mut self, deed: Deed) {
        let Deed { pid, fd, ts, .. } = deed;
        match deed.what {
            What::Read => self.read(deed),
            What::Wrote => self.wrote(deed),
            What::Accepted { listener } => {
                let of = self.descriptor(pid, listener);
                self.close(pid, fd, u64::MAX);
                if of != Some(Descriptor::OneWay) {
                    let id = self.connection(0);
                    self.lead(pid, fd, (id, ts));
                }
            }
            What::Open { number } => self.open(deed, number),
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

    fn read(&mut self, deed: Deed) {
        let Some(connection) = self.of(deed.pid, deed.fd) else {
            return;
        };
        // More of the same question.
        if connection.begun > 0 && !connection.is_answered {
            return;
        }
        connection.begun = deed.ts;
        connection.reader = (deed.pid, deed.tid);
        connection.is_answered = false;
        connection.is_done = false;
    }

    fn wrote(&mut self, deed: Deed) {
        let (least, kept) = (self.least, self.kept);
        let Some(connection) = self.of(deed.pid, deed.fd) else {
            return;
        };
        // A greeting, or the answer to what was read before the connection was known.
        if connection.begun == 0 {
            return;
        }
        connection.is_answered = true;
        let took = deed.ts.saturating_sub(connection.begun);
        if connection.is_done || took < least {
            return;
        }
        connection.is_done = true;
        if took < kept {
            self.slow.push(Slow {
                ts: deed.ts,
                took,
                thread: (deed.pid, deed.tid),
            });
        }
    }

    fn open(&mut self, deed: Deed, number: u64) {
        match self.of(deed.pid, deed.fd) {
            Some(connection) if connection.number == number => return,
            // Accepted while this recorded.
            Some(connection) if connection.number == 0 => {
                connection.number = number;
                if let Some(Descriptor::Connection { id, .. }) = self.descriptor(deed.pid, deed.fd)
                {
                    self.by_number.insert(number, id);
                }
                return;
            }
            _ => self.close(deed.pid, deed.fd, u64::MAX),
        }
        let known = self.by_number.get(&number).copied();
        let id = known.unwrap_or_else(|| self.connection(number));
        self.lead(deed.pid, deed.fd, (id, deed.ts));
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

    /// Unless it leads there only since a later moment.
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

    /// A descriptor leads there no more.
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
