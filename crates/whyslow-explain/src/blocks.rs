//! What a wait for a request to a block device consists of: held before the block layer, in its
//! queue, behind requests of others in the device, and its own service.

use whyslow_model::Ns;

use crate::behalf::Behalf;
use crate::leaf::{Object, Proof, Who, Why};
use crate::moment::{Moment, Request, Utid};
use crate::report::Grade;

/// A piece of the wait with its reason.
pub(crate) type Piece = (Ns, Ns, Why);

/// Less than this between the begin of a wait and that of its request is the way through the kernel.
const WAY_NS: Ns = 1_000_000;

/// Splits the wait `[x, y)` of `waiter` that ended with the request.
pub(crate) fn split(
    moment: &Moment,
    behalf: &Behalf<'_>,
    request: &Request,
    waiter: Utid,
    (x, y): (Ns, Ns),
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let start = request.begin.clamp(x, y);
    let issue = request.issue.unwrap_or(request.begin).clamp(start, y);
    if start > x {
        before(moment, behalf, request, waiter, (x, start), &mut pieces);
    }
    if issue > start {
        in_turn(moment, behalf, request, waiter, (start, issue), Stage::Queue, &mut pieces);
    }
    if y > issue {
        in_turn(moment, behalf, request, waiter, (issue, y), Stage::Device, &mut pieces);
    }
    pieces
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queue,
    Device,
}

/// Time of a wait before the request that ended it began: waits for the same thread's earlier
/// requests, or for nothing that the block layer knows of.
fn before(
    moment: &Moment,
    behalf: &Behalf<'_>,
    request: &Request,
    waiter: Utid,
    (x, start): (Ns, Ns),
    pieces: &mut Vec<Piece>,
) {
    let mut at = x;
    // Those of the same owner, one after another: a large transfer is many requests.
    let mut earlier: Vec<&Request> = moment
        .done_after(request.dev, x)
        .take_while(|other| other.end <= start + WAY_NS)
        .filter(|other| other.id != request.id && other.begin < start)
        .filter(|other| other.utid == request.utid || other.utid == Some(waiter))
        .collect();
    earlier.sort_by_key(|other| (other.begin, other.id));
    for other in earlier {
        let begin = other.begin.max(at);
        let end = other.end.min(start);
        if end <= begin {
            continue;
        }
        if begin > at {
            held(moment, request, waiter, (at, begin), pieces);
        }
        let issue = other.issue.unwrap_or(other.begin).clamp(begin, end);
        if issue > begin {
            in_turn(moment, behalf, other, waiter, (begin, issue), Stage::Queue, pieces);
        }
        if end > issue {
            in_turn(moment, behalf, other, waiter, (issue, end), Stage::Device, pieces);
        }
        at = end;
    }
    if start > at {
        held(moment, request, waiter, (at, start), pieces);
    }
}

/// Nothing of it was with the block layer yet.
fn held(
    moment: &Moment,
    request: &Request,
    waiter: Utid,
    (begin, end): (Ns, Ns),
    pieces: &mut Vec<Piece>,
) {
    let device = Some(Object::Device(request.dev_name));
    let why = if end - begin < WAY_NS {
        Why::new("io_wait", Who::Thread(waiter), Grade::A)
    } else if let Some(owner) = request.utid.filter(|owner| moment.people.is_kernel(*owner))
        && moment.word(request.op) == "write"
    {
        // Pages are written by workers: nobody had begun with these.
        Why::new("writeback_wait", Who::Thread(owner), Grade::B)
    } else {
        Why::new("block_held", Who::Cgroup(request.dev_name), Grade::B)
    };
    let why = why.about(device).by(Proof::Request(request.id));
    pieces.push((begin, end, why));
}

/// Requests of a device that ended one after another while this one waited: each had the device from
/// the end of the one before to its own. The last piece is the request's own.
fn in_turn(
    moment: &Moment,
    behalf: &Behalf<'_>,
    request: &Request,
    waiter: Utid,
    (begin, end): (Ns, Ns),
    stage: Stage,
    pieces: &mut Vec<Piece>,
) {
    let device = Some(Object::Device(request.dev_name));
    let own = {
        let mechanism = match stage {
            Stage::Queue => "block_queue",
            Stage::Device => "block_service",
        };
        let who = owner(behalf, request, waiter);
        let grade = grade_of(request, who, waiter).min(who.1);
        Why::new(mechanism, who.0, grade).about(device).by(Proof::Request(request.id))
    };
    let mut at = begin;
    if behalf.is_serial(request.dev) || stage == Stage::Queue {
        for other in moment.done_after(request.dev, begin) {
            if other.id == request.id || other.end >= end {
                break;
            }
            // One that came later did not stand before it, but it did have the device.
            if other.end <= at || other.is_open {
                continue;
            }
            let who = owner(behalf, other, waiter);
            let grade = grade_of(other, who, waiter).min(who.1);
            let why = Why::new("block_queue", who.0, grade)
                .about(device)
                .by(Proof::Request(other.id));
            pieces.push((at, other.end, why));
            at = other.end;
        }
    } else {
        let alone = behalf.alone(request);
        let excess = (end - begin) - alone;
        let others = others_in_flight(moment, request, (begin, end));
        let weight: f64 = others.iter().map(|(_, weight)| weight).sum();
        if excess > alone && weight > 0.0 {
            // In a device that serves many at once each of the others slows this one down by as much as
            // it asks for; the order of the shares in time has no meaning.
            for (other, share) in others {
                let length = (excess as f64 * share / weight) as Ns;
                let who = owner(behalf, other, waiter);
                let why = Why::new("block_queue", who.0, Grade::B.min(who.1))
                    .about(device)
                    .by(Proof::Request(other.id));
                if length > 0 {
                    pieces.push((at, at + length, why));
                    at += length;
                }
            }
        }
    }
    if end > at {
        pieces.push((at, end, own));
    }
}

/// Others that the device had at the same time, with how much of it: overlap × bytes.
fn others_in_flight<'m>(
    moment: &'m Moment,
    request: &Request,
    (begin, end): (Ns, Ns),
) -> Vec<(&'m Request, f64)> {
    let after = moment.done_after(request.dev, begin);
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

/// For whom a request was made.
fn owner(behalf: &Behalf<'_>, request: &Request, waiter: Utid) -> (Who, Grade) {
    match request.utid {
        Some(utid) if utid == waiter => (Who::Thread(waiter), Grade::A),
        Some(utid) => behalf.of(utid, request, waiter),
        None => (Who::Device(request.dev_name), Grade::B),
    }
}

fn grade_of(request: &Request, (who, _): (Who, Grade), waiter: Utid) -> Grade {
    if request.is_owner_guessed && who != Who::Thread(waiter) {
        Grade::B
    } else {
        Grade::A
    }
}
