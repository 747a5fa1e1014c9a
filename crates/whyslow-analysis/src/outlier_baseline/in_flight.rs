//! Requests in flight at a device while it has a request.
//!
//! Requests arrive in the order in which they were queued, but are counted from issue. So each
//! waits until no earlier issue can arrive any more, and until it ends: memory is needed for the
//! requests in flight, not for all of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use whyslow_model::Ns;

/// Requests of one device.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    /// Requests that were issued this long before another count as just before it.
    lately: Ns,
    /// Queued requests by issue time, and requests in flight by end time.
    waiting: Queue,
    there: Queue,
    requests: Slots<There<T>>,
    recent: VecDeque<Ns>,
    /// Time that each request has received so far if those in flight share the device equally: see
    /// [`Completed`].
    shared: f64,
    /// Current time.
    now: Ns,
}

/// A request with its issue and end at the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Issued<T> {
    pub(crate) issue: Ns,
    pub(crate) id: i64,
    pub(crate) end: Ns,
    pub(crate) what: T,
}

/// Data of a request at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Completed<T> {
    pub(crate) request: Issued<T>,
    /// Requests in flight when it was issued, itself included.
    pub(crate) depth: u64,
    /// Requests issued just before it.
    pub(crate) preceded: u64,
    /// Its share of the device's time if all requests in flight share it equally. A device that
    /// processes all its requests concurrently, at constant total speed, needs this long for the
    /// request alone.
    pub(crate) share_ns: Ns,
}

#[derive(Debug)]
struct There<T> {
    request: Issued<T>,
    depth: u64,
    preceded: u64,
    /// `shared` at its issue.
    begun: f64,
}

impl<T> InFlight<T> {
    pub(crate) fn new(lately: Ns) -> Self {
        Self {
            lately,
            waiting: Queue::new(),
            there: Queue::new(),
            requests: Slots::default(),
            recent: VecDeque::new(),
            shared: 0.0,
            now: Ns::MIN,
        }
    }

    /// Adds a request that was queued at `ts`, not earlier than those before; reports the requests
    /// that are complete.
    pub(crate) fn add(&mut self, ts: Ns, request: Issued<T>, each: &mut impl FnMut(Completed<T>)) {
        self.issue_until(ts, each);
        let (issue, id) = (request.issue, request.id);
        let slot = self.requests.put(There {
            request,
            depth: 0,
            preceded: 0,
            begun: 0.0,
        });
        self.waiting.push(Reverse((issue, id, slot)));
    }

    /// Reports the rest.
    pub(crate) fn finish(mut self, each: &mut impl FnMut(Completed<T>)) {
        self.issue_until(Ns::MAX, each);
        self.end_until(Ns::MAX, each);
    }

    fn issue_until(&mut self, ts: Ns, each: &mut impl FnMut(Completed<T>)) {
        while let Some(Reverse((issue, id, slot))) = self.waiting.peek().copied()
            && issue < ts
        {
            self.waiting.pop();
            self.end_until(issue, each);
            self.go_on(issue);
            let since = issue.saturating_sub(self.lately);
            while self.recent.front().is_some_and(|issue| *issue < since) {
                self.recent.pop_front();
            }
            if let Some(there) = self.requests.get_mut(slot) {
                there.depth = self.there.len() as u64 + 1;
                there.preceded = self.recent.len() as u64;
                there.begun = self.shared;
                self.there.push(Reverse((there.request.end, id, slot)));
            }
            self.recent.push_back(issue);
        }
    }

    fn end_until(&mut self, ts: Ns, each: &mut impl FnMut(Completed<T>)) {
        while let Some(Reverse((end, _, slot))) = self.there.peek().copied()
            && end <= ts
        {
            self.go_on(end);
            self.there.pop();
            if let Some(there) = self.requests.take(slot) {
                each(Completed {
                    depth: there.depth,
                    preceded: there.preceded,
                    share_ns: (self.shared - there.begun).round() as Ns,
                    request: there.request,
                });
            }
        }
    }

    fn go_on(&mut self, ts: Ns) {
        if !self.there.is_empty() && ts > self.now {
            self.shared += (ts - self.now) as f64 / self.there.len() as f64;
        }
        self.now = self.now.max(ts);
    }
}

/// Times with the sequence numbers of requests and their slots, earliest first: the elements that
/// move in the heap are small.
type Queue = BinaryHeap<Reverse<(Ns, i64, u32)>>;

/// Items by slot number; slots are reused.
#[derive(Debug)]
struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, thing: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[slot as usize] = Some(thing);
        slot
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.places.get_mut(slot as usize)?.as_mut()
    }

    fn take(&mut self, slot: u32) -> Option<T> {
        let thing = self.places.get_mut(slot as usize)?.take();
        self.free.push(slot);
        thing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn completed(lately: Ns, requests: &[(Ns, Issued<()>)]) -> Vec<Completed<()>> {
        let mut found = Vec::new();
        let mut in_flight = InFlight::new(lately);
        let mut each = |completed| found.push(completed);
        for (ts, request) in requests {
            in_flight.add(*ts, *request, &mut each);
        }
        in_flight.finish(&mut each);
        found
    }

    proptest! {
        #[test]
        fn what_is_told_is_what_a_count_by_hand_finds(
            mut requests in prop::collection::vec((0i64..60, 0i64..20, 0i64..30), 0..40),
        ) {
            requests.sort_unstable_by_key(|(ts, _, _)| *ts);
            let issued = |(id, (ts, queue, device)): (i64, &(i64, i64, i64))| {
                let issue = ts + queue;
                let request = Issued { issue, id, end: issue + device, what: () };
                (*ts, request)
            };
            let issued: Vec<_> = (0..).zip(&requests).map(issued).collect();
            let found = completed(7, &issued);
            prop_assert_eq!(found.len(), issued.len());
            let all = || issued.iter().map(|(_, request)| request);
            for completed in found {
                let Issued { issue, id, end, .. } = completed.request;
                let before = || all().filter(move |other| (other.issue, other.id) < (issue, id));
                let there = before().filter(|other| other.end > issue).count() as u64;
                prop_assert_eq!(completed.depth, there + 1);
                let lately = before().filter(|other| other.issue >= issue - 7).count() as u64;
                prop_assert_eq!(completed.preceded, lately);
                let part = |at: Ns| {
                    let there = all().filter(|other| other.issue <= at && at < other.end);
                    1.0 / there.count() as f64
                };
                let share: f64 = (issue..end).map(part).sum();
                prop_assert!((share - completed.share_ns as f64).abs() < 0.51, "{completed:?} {share}");
            }
        }
    }
}
