//! What a wait for a request to a block device consists of: held before the block layer, in its
//! queue, behind requests of others in the device, and its own service.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::behalf::Behalf;
use crate::leaf::{Object, Proof, Who, Why};
use crate::moment::{Moment, Request, Utid};
use crate::report::Grade;

/// A piece of the wait with its reason.
pub(crate) type Piece = (Ns, Ns, Why);

/// Less than this between the begin of a wait and that of its request is the way through the kernel.
const WAY_NS: Ns = 1_000_000;

/// A device is slow for a request by so much more than for such ones alone, and so many times.
const SLOW_MIN_NS: Ns = 5_000_000;
const SLOW_TIMES: f64 = 4.0;

/// Splits the wait `[x, y)` of `waiter` that ended with the request. Pieces follow each other.
pub(crate) fn split(
    moment: &Moment,
    behalf: &Behalf<'_>,
    request: &Request,
    waiter: Utid,
    (x, y): (Ns, Ns),
) -> Vec<Piece> {
    let mut wait = Wait {
        moment,
        behalf,
        waiter,
        pieces: Vec::new(),
    };
    let start = request.begin.clamp(x, y);
    if start > x {
        wait.before(request, (x, start));
    }
    wait.through(request, (start, y));
    wait.pieces
}

fn is_slow(took: Ns, usual: Ns) -> bool {
    let slow = took - usual;
    usual > 0 && slow >= SLOW_MIN_NS && slow as f64 >= SLOW_TIMES * usual as f64
}

struct Wait<'m> {
    moment: &'m Moment,
    behalf: &'m Behalf<'m>,
    waiter: Utid,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queue,
    Device,
}

impl<'m> Wait<'m> {
    /// Time of a wait before the request that ended it began: waits for the same thread's earlier
    /// requests, or for nothing that the block layer knows of.
    fn before(&mut self, request: &Request, (x, start): (Ns, Ns)) {
        let moment = self.moment;
        let mut at = x;
        // Those of the same owner, one after another: a large transfer is many requests.
        let mut earlier: Vec<&Request> = moment
            .done_after(request.dev, x)
            .take_while(|other| other.end <= start + WAY_NS)
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
            self.through(other, (begin, end));
            at = end;
        }
        if start > at {
            self.held(request, (at, start));
        }
    }

    /// Nothing of it was with the block layer yet.
    fn held(&mut self, request: &Request, (begin, end): (Ns, Ns)) {
        let moment = self.moment;
        let device = Some(Object::Device(request.dev_name));
        let why = if end - begin < WAY_NS {
            Why::new("io_wait", Who::Thread(self.waiter), Grade::A)
        } else if let Some(owner) = request.utid.filter(|owner| moment.people.is_kernel(*owner))
            && moment.word(request.op) == "write"
        {
            // Pages are written by workers: nobody had begun with these.
            Why::new("writeback_wait", Who::Thread(owner), Grade::B)
        } else {
            Why::new("block_held", Who::Thread(self.waiter), Grade::B)
        };
        let why = why.about(device).by(Proof::Request(request.id));
        self.pieces.push((begin, end, why));
    }

    /// In the queue, then in the device.
    fn through(&mut self, request: &Request, (begin, end): (Ns, Ns)) {
        let issue = request.issue.unwrap_or(request.begin).clamp(begin, end);
        if issue > begin {
            self.in_turn(request, (begin, issue), Stage::Queue);
        }
        if end > issue {
            self.in_turn(request, (issue, end), Stage::Device);
        }
    }

    /// Requests of a device that ended one after another while this one waited: each had the device
    /// from the end of the one before to its own. The last piece is the request's own.
    fn in_turn(&mut self, request: &Request, (begin, end): (Ns, Ns), stage: Stage) {
        let mut at = begin;
        if stage == Stage::Queue || self.behalf.is_serial(request.dev) {
            for other in self.moment.done_after(request.dev, begin) {
                if other.id == request.id || other.end >= end {
                    break;
                }
                // One that came later did not stand before it, but it did have the device.
                if other.end > at && !other.is_open {
                    self.behind(other, (at, other.end), Grade::A);
                    at = other.end;
                }
            }
        } else {
            let alone = self.behalf.alone(request);
            let excess = (end - begin) - alone;
            let others = self.others_in_flight(request, (begin, end));
            let weight: f64 = others.iter().map(|(_, weight)| weight).sum();
            let is_slow = self.is_slow_for_own(request, &others, end - begin);
            if excess > alone && weight > 0.0 && !is_slow {
                // In a device that serves many at once each of the others slows this one down by as
                // much as it asks for; the order of the shares in time has no meaning.
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

    /// Whether a device that had requests of the waiter only took much longer for this one than if it
    /// had served them one after another.
    fn is_slow_for_own(&self, request: &Request, others: &[(&Request, f64)], took: Ns) -> bool {
        let is_own = |other: &Request| other.utid == Some(self.waiter);
        if !is_own(request) || !others.iter().all(|(other, _)| is_own(other)) {
            return false;
        }
        let all = others.iter().map(|(other, _)| *other).chain([request]);
        let usual: Option<Ns> = all
            .map(|one| self.behalf.has_like(one).then(|| self.behalf.alone(one)))
            .sum();
        usual.is_some_and(|usual| is_slow(took, usual))
    }

    /// What is left is the request's own.
    fn own(&mut self, request: &Request, (begin, end): (Ns, Ns), stage: Stage) {
        let mechanism = match stage {
            Stage::Queue => "block_queue",
            Stage::Device => "block_service",
        };
        let why = self.of_request(mechanism, request);
        let is_own = stage == Stage::Device && request.utid == Some(self.waiter);
        let at = if is_own {
            self.slow(request, (begin, end), why)
        } else {
            begin
        };
        if end > at {
            self.pieces.push((at, end, why));
        }
    }

    /// Of a device that takes much longer for a request of the waiter than it does for such requests,
    /// with nothing in front of it: what it usually takes, then the device's. Where what is left begins.
    fn slow(&mut self, request: &Request, (begin, end): (Ns, Ns), why: Why) -> Ns {
        if !self.behalf.has_like(request) {
            return begin;
        }
        let alone = self.behalf.alone(request);
        if !is_slow(end - begin, alone) {
            return begin;
        }
        self.pieces.push((begin, begin + alone, why));
        let device = Why {
            mechanism: "block_service",
            who: Who::Device(request.dev_name),
            ..why
        };
        self.pieces.push((begin + alone, end, device));
        end
    }

    /// Time behind another request. Of one that holds sectors of several threads each has as much of it
    /// as it has sectors; their order in it has no meaning.
    fn behind(&mut self, other: &Request, (begin, end): (Ns, Ns), grade: Grade) {
        let mut why = self.of_request("block_queue", other);
        why.grade = why.grade.min(grade);
        // Its own request in front, such as one of readahead, is no hog if the device is slow for it.
        let begin = if other.utid == Some(self.waiter) && grade == Grade::A {
            self.slow(other, (begin, end), why)
        } else {
            begin
        };
        let shares = self.moment.shares_of(other.id);
        let all: i64 = shares.iter().map(|(_, sectors)| sectors).sum();
        let mut at = begin;
        for (utid, sectors) in shares {
            let length = (end - begin) as f64 * *sectors as f64 / all.max(1) as f64;
            let until = (at + length as Ns).min(end);
            let (who, of_owner) = match utid {
                Some(utid) if *utid == self.waiter => (Who::Thread(*utid), Grade::A),
                Some(utid) => self.behalf.of(*utid, other, self.waiter),
                None => (Who::Device(other.dev_name), Grade::B),
            };
            if until > at {
                let grade = why.grade.min(of_owner).min(Grade::B);
                self.pieces.push((at, until, Why { who, grade, ..why }));
                at = until;
            }
        }
        if end > at {
            self.pieces.push((at, end, why));
        }
    }

    fn of_request(&self, mechanism: &'static str, request: &Request) -> Why {
        let (who, grade) = match request.utid {
            Some(utid) if utid == self.waiter => (Who::Thread(utid), Grade::A),
            Some(utid) => self.behalf.of(utid, request, self.waiter),
            None => (Who::Device(request.dev_name), Grade::B),
        };
        let is_guessed = request.is_owner_guessed && who != Who::Thread(self.waiter);
        let grade = if is_guessed {
            grade.min(Grade::B)
        } else {
            grade
        };
        Why::new(mechanism, who, grade)
            .about(Some(Object::Device(request.dev_name)))
            .by(Proof::Request(request.id))
    }

    /// Others that the device had at the same time, with how much of it: overlap × bytes.
    fn others_in_flight(
        &self,
        request: &Request,
        (begin, end): (Ns, Ns),
    ) -> Vec<(&'m Request, f64)> {
        let after = self.moment.done_after(request.dev, begin);
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
