//! What else a device had to do while it had a request.
//!
//! Requests come in the order of their first moment, which is when they were queued, while what is
//! told of them counts from issue. So each waits until nothing that was issued before it can come
//! any more, and until its own end: memory for the requests of one moment, not for all there are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use whyslow_model::Ns;

/// Requests of one device.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    /// So long before its issue others count as just before it.
    lately: Ns,
    /// Those to be issued by time of that, and those there by their end.
    waiting: Queue,
    there: Queue,
    requests: Slots<There<T>>,
    recent: VecDeque<Ns>,
    /// Time that each request got so far, if those there at a moment shared it: see [`Told`].
    shared: f64,
    /// Up to here.
    now: Ns,
}

/// A request as the device sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Issued<T> {
    pub(crate) issue: Ns,
    pub(crate) id: i64,
    pub(crate) end: Ns,
    pub(crate) what: T,
}

/// What is known of a request at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Told<T> {
    pub(crate) request: Issued<T>,
    /// Requests the device had when it got this one, itself included.
    pub(crate) depth: u64,
    /// Requests issued to it just before.
    pub(crate) preceded: u64,
    /// Its part of the device's time, if at each moment those there had equal parts. A device that
    /// works on all it has at once, at one speed, needs so long for the request alone.
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

    /// Adds a request whose first moment is `ts`, none of those before being later; tells what can
    /// be told by now.
    pub(crate) fn add(&mut self, ts: Ns, request: Issued<T>, each: &mut impl FnMut(Told<T>)) {
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

    /// Tells of the rest.
    pub(crate) fn finish(mut self, each: &mut impl FnMut(Told<T>)) {
        self.issue_until(Ns::MAX, each);
        self.end_until(Ns::MAX, each);
    }

    fn issue_until(&mut self, ts: Ns, each: &mut impl FnMut(Told<T>)) {
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

    fn end_until(&mut self, ts: Ns, each: &mut impl FnMut(Told<T>)) {
        while let Some(Reverse((end, _, slot))) = self.there.peek().copied()
            && end <= ts
        {
            self.go_on(end);
            self.there.pop();
            if let Some(there) = self.requests.take(slot) {
                each(Told {
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

/// Moments with the numbers of requests and where these are kept, the earliest first: what moves when
/// the queue changes is small.
type Queue = BinaryHeap<Reverse<(Ns, i64, u32)>>;

/// Things by the number of their place, which is used again.
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

    fn told(lately: Ns, requests: &[(Ns, Issued<()>)]) -> Vec<Told<()>> {
        let mut found = Vec::new();
        let mut in_flight = InFlight::new(lately);
        let mut each = |told| found.push(told);
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
            let found = told(7, &issued);
            prop_assert_eq!(found.len(), issued.len());
            let all = || issued.iter().map(|(_, request)| request);
            for told in found {
                let Issued { issue, id, end, .. } = told.request;
                let before = || all().filter(move |other| (other.issue, other.id) < (issue, id));
                let there = before().filter(|other| other.end > issue).count() as u64;
                prop_assert_eq!(told.depth, there + 1);
                let lately = before().filter(|other| other.issue >= issue - 7).count() as u64;
                prop_assert_eq!(told.preceded, lately);
                let part = |at: Ns| {
                    let there = all().filter(|other| other.issue <= at && at < other.end);
                    1.0 / there.count() as f64
                };
                let share: f64 = (issue..end).map(part).sum();
                prop_assert!((share - told.share_ns as f64).abs() < 0.51, "{told:?} {share}");
            }
        }
    }
}
