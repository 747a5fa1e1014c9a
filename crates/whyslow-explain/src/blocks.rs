//! The stages of a wait for a block request: throttled before the block layer, queued, behind other
//! requests in the device, and served.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::report::Grade;
use crate::slow::is_for_completions;
use crate::window_slice::{Request, Utid, WindowSlice};

/// An interval of the wait with its cause.
pub(crate) type Piece = (Ns, Ns, Reason);

/// A shorter time between the start of a wait and that of its request is the path through the
/// kernel.
pub(crate) const SUBMIT_NS: Ns = 1_000_000;

/// A device is slow if a request takes longer than a similar one alone, by this much and this
/// factor.
const SLOW_MIN_NS: Ns = 5_000_000;
const SLOW_TIMES: f64 = 4.0;

/// Splits the wait `[x, y)` of `waiter` that ended with the request into consecutive intervals.
pub(crate) fn split(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    request: &Request,
    waiter: Utid,
    (x, y): (Ns, Ns),
) -> Vec<Piece> {
    let mut wait = Wait {
        slice,
        attribution,
        waiter,
        pieces: Vec::new(),
    };
    let start = request.begin.clamp(x, y);
    if start > x {
        wait.before(request, (x, start));
    }
    wait.of_any(request, (start, y));
    wait.pieces
}

fn is_slow(took: Ns, usual: Ns) -> bool {
    let slow = took - usual;
    usual > 0 && slow >= SLOW_MIN_NS && slow as f64 >= SLOW_TIMES * usual as f64
}

pub(crate) struct Wait<'m> {
    pub(crate) slice: &'m WindowSlice,
    attribution: &'m Attribution<'m>,
    waiter: Utid,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queue,
    Device,
}

impl<'m> Wait<'m> {
    /// Time of a wait before the request that ended it started: waits for earlier requests of the
    /// same thread, or time unknown to the block layer.
    fn before(&mut self, request: &Request, (x, start): (Ns, Ns)) {
        let slice = self.slice;
        let mut at = x;
        // A large transfer consists of many consecutive requests of one owner.
        let mut earlier: Vec<&Request> = slice
            .done_after(request.dev, x)
            .take_while(|other| other.end <= start + SUBMIT_NS)
            .chain(slice.bios_of(request.dev, (x, start + SUBMIT_NS)))
            .filter(|other| other.id != request.id && other.begin < start)
            .filter(|other| other.utid == request.utid || other.utid == Some(self.waiter))
            .collect();
        earlier.index_sort_by_ints(|other| [other.begin, other.id, 0]);
        for other in earlier {
            let begin = other.begin.max(at);
            let end = other.end.min(start);
            if end <= begin {
                continue;
            }
            if begin > at {
                self.held(request, (at, begin));
            }
            self.of_any(other, (begin, end));
            at = end;
        }
        if start > at {
            self.held(request, (at, start));
        }
    }

    /// Time before the I/O reached the block layer.
    fn held(&mut self, request: &Request, (begin, end): (Ns, Ns)) {
        let slice = self.slice;
        if let Some(upper) = slice.above(request, begin) {
            self.held_by(upper, (begin, end), true);
            return;
        }
        let device = Some(Object::Device(request.dev_name));
        let reason = if end - begin < SUBMIT_NS {
            Reason::new("io_wait", BlameTarget::Thread(self.waiter), Grade::A)
        } else if let Some(reason) = self.not_submitted(request, begin) {
            reason
        } else if let Some(owner) = request
            .utid
            .filter(|owner| slice.thread_table.is_kernel(*owner))
            && slice.text(request.op) == "write"
        {
            // Workers write pages back, and none had started on these.
            Reason::new("writeback_wait", BlameTarget::Thread(owner), Grade::B)
        } else {
            Reason::new("block_held", BlameTarget::Thread(self.waiter), Grade::B)
        };
        let reason = reason.about(device).by(Proof::Request(request.id));
        self.pieces.push((begin, end, reason));
    }

    /// A wait for completions may start before the request is submitted, by another thread.
    fn not_submitted(&self, request: &Request, at: Ns) -> Option<Reason> {
        let call = self.slice.call_at(self.waiter, at)?;
        if !is_for_completions(self.slice.text(call.name)) {
            return None;
        }
        Some(match request.utid {
            Some(utid) if utid != self.waiter => {
                Reason::new("producer_idle", BlameTarget::Thread(utid), Grade::B)
            }
            _ => Reason::unknown("unknown"),
        })
    }

    pub(crate) fn push(&mut self, begin: Ns, end: Ns, reason: Reason) {
        self.pieces.push((begin, end, reason));
    }

    /// In the queue, then in the device.
    pub(crate) fn through(&mut self, request: &Request, (begin, end): (Ns, Ns)) {
        let issue = request.issue.unwrap_or(request.begin).clamp(begin, end);
        if issue > begin {
            self.split_stage(request, (begin, issue), Stage::Queue);
        }
        if end > issue {
            self.split_stage(request, (issue, end), Stage::Device);
        }
    }

    /// Requests of the device that completed while this one waited: each had the device from the
    /// previous completion to its own. The last interval is the request's own.
    fn split_stage(&mut self, request: &Request, (begin, end): (Ns, Ns), stage: Stage) {
        let mut at = begin;
        if stage == Stage::Queue || self.attribution.is_serial(request.dev) {
            for other in self.slice.done_after(request.dev, begin) {
                if other.id == request.id || other.end >= end {
                    break;
                }
                // A later request was not ahead in the queue, but it did occupy the device.
                if other.end > at && !other.is_open {
                    self.behind(other, (at, other.end), Grade::A);
                    at = other.end;
                }
            }
        } else {
            let alone = self.attribution.alone(request);
            let excess = (end - begin) - alone;
            let others = self.others_in_flight(request, (begin, end));
            let weight: f64 = others.iter().map(|(_, weight)| weight).sum();
            let is_slow = self.is_slow_for_own(request, &others, end - begin);
            if excess > alone && weight > 0.0 && !is_slow {
                // In a device that serves many requests at once, each of the others slows this one
                // down in proportion to its size. The order of these intervals has no meaning.
                for (other, share) in others {
                    let length = (excess as f64 * share / weight) as Ns;
                    if length > 0 {
                        self.behind(other, (at, at + length), Grade::B);
                        at += length;
                    }
                }
            }
        }
        if end > at {
            self.own(request, (at, end), stage);
        }
    }

    /// Whether a device that had only requests of the waiter took much longer for this one than
    /// serving all of them one at a time would have taken.
    fn is_slow_for_own(&self, request: &Request, others: &[(&Request, f64)], took: Ns) -> bool {
        let is_own = |other: &Request| other.utid == Some(self.waiter);
        if !is_own(request) || !others.iter().all(|(other, _)| is_own(other)) {
            return false;
        }
        let all = others.iter().map(|(other, _)| *other).chain([request]);
        let usual: Option<Ns> = all
            .map(|one| {
                self.attribution
                    .has_like(one)
                    .then(|| self.attribution.alone(one))
            })
            .sum();
        usual.is_some_and(|usual| is_slow(took, usual))
    }

    /// The rest of the time is the request's own.
    fn own(&mut self, request: &Request, (begin, end): (Ns, Ns), stage: Stage) {
        let mechanism = match stage {
            Stage::Queue => "block_queue",
            Stage::Device => "block_service",
        };
        let reason = self.of_request(mechanism, request);
        let is_own = stage == Stage::Device && request.utid == Some(self.waiter);
        let at = if is_own {
            self.slow(request, (begin, end), reason)
        } else {
            begin
        };
        if end > at {
            self.pieces.push((at, end, reason));
        }
    }

    /// Splits the time of a device that is unusually slow for a request of the waiter, with no
    /// request ahead of it: the usual service time, then the excess, which is attributed to the
    /// device. Returns where the rest starts.
    fn slow(&mut self, request: &Request, (begin, end): (Ns, Ns), reason: Reason) -> Ns {
        if !self.attribution.has_like(request) {
            return begin;
        }
        let alone = self.attribution.alone(request);
        if !is_slow(end - begin, alone) {
            return begin;
        }
        self.pieces.push((begin, begin + alone, reason));
        let device = Reason {
            mechanism: "block_service",
            target: BlameTarget::Device(request.dev_name),
            ..reason
        };
        self.pieces.push((begin + alone, end, device));
        end
    }

    /// Time behind another request. If it holds sectors of several threads, the time is divided in
    /// proportion to their sectors; the order has no meaning.
    fn behind(&mut self, other: &Request, (begin, end): (Ns, Ns), grade: Grade) {
        let mut reason = self.of_request("block_queue", other);
        reason.grade = reason.grade.min(grade);
        // If the device is slow for the waiter's own earlier request, such as readahead, the device
        // is the culprit.
        let begin = if other.utid == Some(self.waiter) && grade == Grade::A {
            self.slow(other, (begin, end), reason)
        } else {
            begin
        };
        let shares = self.slice.shares_of(other.id);
        let all: i64 = shares.iter().map(|(_, sectors)| sectors).sum();
        let mut at = begin;
        for (utid, sectors) in shares {
            let length = (end - begin) as f64 * *sectors as f64 / all.max(1) as f64;
            let until = (at + length as Ns).min(end);
            let (target, of_owner) = match utid {
                Some(utid) if *utid == self.waiter => (BlameTarget::Thread(*utid), Grade::A),
                Some(utid) => self.attribution.of(*utid, other, self.waiter),
                None => (BlameTarget::Device(other.dev_name), Grade::B),
            };
            if until > at {
                let grade = reason.grade.min(of_owner).min(Grade::B);
                self.pieces.push((
                    at,
                    until,
                    Reason {
                        target,
                        grade,
                        ..reason
                    },
                ));
                at = until;
            }
        }
        if end > at {
            self.pieces.push((at, end, reason));
        }
    }

    pub(crate) fn of_request(&self, mechanism: &'static str, request: &Request) -> Reason {
        // A shared flush waits for data of others.
        let is_shared = self.attribution.is_shared_flush(request, self.waiter);
        let mechanism = if is_shared { "block_queue" } else { mechanism };
        let (target, grade) = match request.utid {
            Some(utid) if utid == self.waiter => (BlameTarget::Thread(utid), Grade::A),
            Some(_) if is_shared => self.attribution.of_flush(request, self.waiter),
            Some(utid) => self.attribution.of(utid, request, self.waiter),
            None => (BlameTarget::Device(request.dev_name), Grade::B),
        };
        let is_guessed = request.is_owner_guessed && target != BlameTarget::Thread(self.waiter);
        let grade = if is_guessed {
            grade.min(Grade::B)
        } else {
            grade
        };
        Reason::new(mechanism, target, grade)
            .about(Some(Object::Device(request.dev_name)))
            .by(Proof::Request(request.id))
    }

    /// Other requests in flight on the device, weighted by overlap × bytes.
    fn others_in_flight(
        &self,
        request: &Request,
        (begin, end): (Ns, Ns),
    ) -> Vec<(&'m Request, f64)> {
        let after = self.slice.done_after(request.dev, begin);
        let others = after.filter(|other| other.id != request.id && other.begin < end);
        others
            .map(|other| {
                let from = other.issue.unwrap_or(other.begin).max(begin);
                let overlap = (other.end.min(end) - from).max(0);
                (other, overlap as f64 * other.bytes.max(512) as f64)
            })
            .filter(|(_, weight)| *weight > 0.0)
            .collect()
    }
}
