//! Who works for what, and how work goes from thread to thread.
//!
//! A thread works for the request that it read last, or wrote last, or that it was handed. It is
//! handed one if it was idle and was woken for exactly what it waited for by a thread that works for a
//! request, or if it read what such a thread had written for it. Idle is who has answered all it
//! had, has handed it on, or waits for whatever comes first. That alone proves nothing: of several threads that wait for
//! one queue any may take the next request, and locks change hands the same way. So these are
//! candidates, and in the end only those count that lie between who read the question and who wrote the
//! answer, which is known. Where the same threads wait and wake in turn, as at the lock of an interpreter, nothing
//! is handed over.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::super::fd::Owner;
use super::super::identity::ThreadRef;
use super::connection::{Key, Touch};
use super::deed::Channel;

/// What waits in one channel to be read; of more, nothing is told.
const UNREAD_MAX: usize = 256;
/// Addresses that a thread waited at last.
const WAITS: usize = 8;
/// Parts of one condition variable lie so near to each other: it is waited for at two addresses, in turns.
const NEAR: u64 = 16;
/// Addresses of which that is counted.
const LOCKS_MAX: usize = 1 << 12;
/// Channels in which something waits.
const CHANNELS_MAX: usize = 1 << 14;

/// How a thread got it: the column `got_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
    Futex,
    Eventfd,
    Pipe,
    Unix,
    Socket,
    /// It was made for it.
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

    /// Nothing was read that another one had written: it may have been woken, or made, for something else.
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

/// One thread hands it to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) ts: Ns,
    pub(super) from: Touch,
    pub(super) to: Touch,
    pub(super) way: Way,
    /// Of a futex: since when who got it had waited for that, and where.
    pub(super) waited: Option<(Ns, Place)>,
}

/// An address at which threads wait and are woken.
pub(super) type Place = (Owner, u64);

/// Who wakes others at an address.
#[derive(Debug, Default, Clone, Copy)]
struct Wakes {
    all: u32,
    /// By threads that had waited there themselves.
    own: u32,
    /// Waits there that have no limit of time.
    untimed: u32,
}

impl Wakes {
    /// It is passed round. At queues, where who takes something may wake the next one that waits, at most
    /// every other wakeup is by those. The lock of CPython is waited for in short steps, and known sooner.
    fn is_lock(self) -> bool {
        let is_stepwise = self.untimed == 0 && self.own > 1;
        is_stepwise || (self.own > 2 && self.own.saturating_mul(3) >= self.all.saturating_mul(2))
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Hand {
    pub(super) current: Option<Key>,
    /// It has handed on what it works for.
    pub(super) gave: bool,
    /// The last that it worked for, and how often that changed.
    last: Option<i64>,
    turns: u32,
    /// It was idle at that moment.
    pub(super) free: Ns,
    /// Woken from its wait for whatever comes first.
    pub(super) woken: Option<Ns>,
    /// Where it waited to be woken, the last places.
    waits: [u64; WAITS],
    waits_next: u8,
    /// Where it waited when it was given what it works for: there it waits for more.
    pub(super) got_at: Option<u64>,
}

/// Something in a channel that nobody has read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unread {
    pub(super) of: Option<(Key, Touch)>,
    bytes: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Hands {
    threads: Vec<Hand>,
    channels: FxHashMap<Channel, VecDeque<Unread>>,
    wakes: FxHashMap<Place, Wakes>,
}

impl Hands {
    pub(super) fn of(&mut self, thread: &ThreadRef) -> &mut Hand {
        if thread.index() >= self.threads.len() {
            self.threads.resize(thread.index() + 1, Hand::default());
        }
        &mut self.threads[thread.index()]
    }

    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        if let Some(hand) = self.threads.get_mut(thread.index()) {
            *hand = Hand::default();
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

    /// From now on the thread works for that.
    pub(super) fn take_up(&mut self, thread: &ThreadRef, key: Key, ts: Ns) -> Touch {
        let hand = self.of(thread);
        if hand.last != Some(key.id) {
            hand.turns = hand.turns.wrapping_add(1);
            hand.last = Some(key.id);
        }
        hand.current = Some(key);
        hand.gave = false;
        hand.got_at = None;
        self.touch(thread, ts)
    }

    /// A thread begins to wait at an address.
    pub(super) fn waits(&mut self, thread: &ThreadRef, place: Place, is_timed: bool) {
        let address = near(place.1);
        let hand = self.of(thread);
        if !hand.waits.contains(&address) {
            hand.waits[usize::from(hand.waits_next) % WAITS] = address;
            hand.waits_next = hand.waits_next.wrapping_add(1);
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

    /// A lock is passed round there.
    pub(super) fn is_lock(&self, (owner, address): Place) -> bool {
        let wakes = self.wakes.get(&(owner, near(address)));
        wakes.is_some_and(|wakes| wakes.is_lock())
    }

    /// Whether a thread waits where it was given what it works for, and so for more.
    pub(super) fn is_back(&mut self, thread: &ThreadRef, address: u64) -> bool {
        self.of(thread)
            .got_at
            .is_some_and(|place| near(place) == near(address))
    }

    /// Something is about to be written. Returns whether something had to be given up.
    pub(super) fn put(
        &mut self,
        channel: Channel,
        of: Option<(Key, Touch)>,
        bytes: Option<i64>,
    ) -> bool {
        if of.is_none() && !self.channels.contains_key(&channel) {
            // What waits there is not known, then: who reads it instead of what follows is a
            // candidate too many.
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

    /// What a read got hold of.
    pub(super) fn take(&mut self, channel: Channel, bytes: i64) -> Vec<Unread> {
        let Some(unread) = self.channels.get_mut(&channel) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        let mut left = match channel {
            // The sum of all that was written.
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
