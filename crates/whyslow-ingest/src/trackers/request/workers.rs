//! Tracks the request that each thread works on, and handovers between threads.
//!
//! A thread works on the request that it last read or replied to, or that was handed over to it. A
//! request is handed over if an idle thread is woken, from exactly the wait that it was in, by a
//! thread that works on a request, or if it reads data that such a thread wrote for it. A thread is
//! idle if it replied to all its requests, handed its request over, or waits for any event. That
//! alone proves nothing: of several threads that wait for one queue any may take the next request,
//! and locks change owners the same way. So these are candidates, and in the end only those count
//! that are on a path from the thread that read the request to the one that wrote the reply, which
//! are known. Threads that alternately wait and wake each other, as for the lock of an interpreter,
//! hand nothing over.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::super::fd::Owner;
use super::super::identity::ThreadRef;
use super::connection::{Key, Touch};
use super::socket_op::Channel;

/// Maximum number of unread messages per channel; above it, the contents are unknown.
const UNREAD_MAX: usize = 256;
/// Number of recent wait addresses kept per thread.
const WAITS: usize = 8;
/// Parts of one condition variable are this close to each other: it is waited for at two
/// alternating addresses.
const NEAR: u64 = 16;
/// Maximum number of addresses with wakeup counts.
const LOCKS_MAX: usize = 1 << 12;
/// Maximum number of channels with unread messages.
const CHANNELS_MAX: usize = 1 << 14;

/// How a thread received a request: the column `received_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
    Futex,
    Eventfd,
    Pipe,
    Unix,
    Socket,
    /// The thread was created for it.
    Clone,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "write",
            Way::Futex => "futex",
            Way::Eventfd => "eventfd",
            Way::Pipe => "pipe",
            Way::Unix => "unix",
            Way::Socket => "socket",
            Way::Clone => "clone",
        }
    }

    /// No data was read that another thread had written: the thread may have been woken, or
    /// created, for something else.
    pub(super) fn is_candidate(self) -> bool {
        matches!(self, Way::Futex | Way::Clone)
    }

    pub(super) fn of(channel: Channel) -> Self {
        match channel {
            Channel::Eventfd(_) => Way::Eventfd,
            Channel::Pipe(_) => Way::Pipe,
            Channel::Unix(_) => Way::Unix,
        }
    }
}

/// A handover from one thread to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) ts: Ns,
    pub(super) from: Touch,
    pub(super) to: Touch,
    pub(super) way: Way,
    /// For a futex: start and address of the receiver's wait.
    pub(super) waited: Option<(Ns, Place)>,
}

/// A futex address at which threads wait and are woken.
pub(super) type Place = (Owner, u64);

/// Wakeups at an address.
#[derive(Debug, Default, Clone, Copy)]
struct Wakes {
    all: u32,
    /// Wakeups by threads that had waited there themselves.
    own: u32,
    /// Waits without a timeout.
    untimed: u32,
}

impl Wakes {
    /// It is passed around. At queues, where the thread that takes an item may wake the next
    /// waiting thread, at most every other wakeup is sent by such threads. The lock of CPython is
    /// waited for in short steps, and is recognized sooner.
    fn is_lock(self) -> bool {
        let is_stepwise = self.untimed == 0 && self.own > 1;
        is_stepwise || (self.own > 2 && self.own.saturating_mul(3) >= self.all.saturating_mul(2))
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Worker {
    pub(super) current: Option<Key>,
    /// It handed over its current request.
    pub(super) gave: bool,
    /// The last request that it worked on, and the number of changes.
    last: Option<i64>,
    turns: u32,
    /// Time at which it became idle.
    pub(super) free: Ns,
    /// Woken from a wait for any event.
    pub(super) woken: Option<Ns>,
    /// Recent futex wait addresses.
    waits: [u64; WAITS],
    waits_next: u8,
    /// Wait address at which it received its request: it waits there for more.
    pub(super) got_at: Option<u64>,
}

/// An unread message in a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unread {
    pub(super) of: Option<(Key, Touch)>,
    bytes: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Workers {
    threads: Vec<Worker>,
    channels: FxHashMap<Channel, VecDeque<Unread>>,
    wakes: FxHashMap<Place, Wakes>,
}

impl Workers {
    pub(super) fn of(&mut self, thread: &ThreadRef) -> &mut Worker {
        if thread.index() >= self.threads.len() {
            self.threads.resize(thread.index() + 1, Worker::default());
        }
        &mut self.threads[thread.index()]
    }

    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        if let Some(worker) = self.threads.get_mut(thread.index()) {
            *worker = Worker::default();
        }
    }

    pub(super) fn current(&self, thread: &ThreadRef) -> Option<Key> {
        self.threads.get(thread.index())?.current
    }

    pub(super) fn touch(&mut self, thread: &ThreadRef, ts: Ns) -> Touch {
        Touch {
            ts,
            thread: *thread,
            turns: self.of(thread).turns,
        }
    }

    /// From now on the thread works on this exchange.
    pub(super) fn take_up(&mut self, thread: &ThreadRef, key: Key, ts: Ns) -> Touch {
        let worker = self.of(thread);
        if worker.last != Some(key.id) {
            worker.turns = worker.turns.wrapping_add(1);
            worker.last = Some(key.id);
        }
        worker.current = Some(key);
        worker.gave = false;
        worker.got_at = None;
        self.touch(thread, ts)
    }

    /// A thread starts to wait at an address.
    pub(super) fn waits(&mut self, thread: &ThreadRef, place: Place, is_timed: bool) {
        let address = near(place.1);
        let worker = self.of(thread);
        if !worker.waits.contains(&address) {
            worker.waits[usize::from(worker.waits_next) % WAITS] = address;
            worker.waits_next = worker.waits_next.wrapping_add(1);
        }
        if !is_timed {
            let wakes = self.wakes_at(place);
            wakes.untimed = wakes.untimed.saturating_add(1);
        }
    }

    fn wakes_at(&mut self, (owner, address): Place) -> &mut Wakes {
        if self.wakes.len() >= LOCKS_MAX {
            self.wakes.clear();
        }
        self.wakes.entry((owner, near(address))).or_default()
    }

    /// A thread wakes another one that waits at an address.
    pub(super) fn woke(&mut self, waker: &ThreadRef, place: Place) {
        let is_own = self.of(waker).waits.contains(&near(place.1));
        let wakes = self.wakes_at(place);
        wakes.all = wakes.all.saturating_add(1);
        wakes.own = wakes.own.saturating_add(u32::from(is_own));
    }

    /// Whether a lock at this address is passed around.
    pub(super) fn is_lock(&self, (owner, address): Place) -> bool {
        let wakes = self.wakes.get(&(owner, near(address)));
        wakes.is_some_and(|wakes| wakes.is_lock())
    }

    /// Whether a thread waits where it received its request, and so for the next one.
    pub(super) fn is_back(&mut self, thread: &ThreadRef, address: u64) -> bool {
        self.of(thread)
            .got_at
            .is_some_and(|place| near(place) == near(address))
    }

    /// A message is about to be written. Returns whether something had to be dropped.
    pub(super) fn put(
        &mut self,
        channel: Channel,
        of: Option<(Key, Touch)>,
        bytes: Option<i64>,
    ) -> bool {
        if of.is_none() && !self.channels.contains_key(&channel) {
            // The contents are unknown then: a thread that reads it instead of a later message is a
            // wrong candidate.
            return false;
        }
        if self.channels.len() >= CHANNELS_MAX {
            self.channels.clear();
            return true;
        }
        let unread = self.channels.entry(channel).or_default();
        if unread.len() >= UNREAD_MAX {
            self.channels.remove(&channel);
            return true;
        }
        unread.push_back(Unread { of, bytes });
        false
    }

    /// Messages returned by a read.
    pub(super) fn take(&mut self, channel: Channel, bytes: i64) -> Vec<Unread> {
        let Some(unread) = self.channels.get_mut(&channel) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        let mut left = match channel {
            // An eventfd returns the sum of all writes.
            Channel::Eventfd(_) => i64::MAX,
            Channel::Pipe(_) | Channel::Unix(_) => bytes,
        };
        while left > 0
            && let Some(first) = unread.front_mut()
        {
            match first.bytes {
                Some(bytes) if bytes > left => {
                    taken.push(*first);
                    first.bytes = Some(bytes - left);
                    break;
                }
                Some(bytes) => left -= bytes.max(0),
                None => left -= 1,
            }
            taken.extend(unread.pop_front());
        }
        if unread.is_empty() {
            self.channels.remove(&channel);
        }
        taken
    }
}

fn near(address: u64) -> u64 {
    address & !(NEAR - 1)
}
