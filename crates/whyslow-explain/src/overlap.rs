//! What can be inferred without scheduling events: calls and requests in progress at the same time.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::behalf::Behalf;
use crate::blame::Blame;
use crate::leaf::{Leaf, Object, Proof, Who, Why};
use crate::moment::{Moment, Utid};
use crate::report::{Grade, Neighbour};
use crate::walk::Walk;

/// Maximum number of neighbours by I/O, and by CPU time.
const NEIGHBOURS_MAX: usize = 5;
/// A process with less I/O, or a smaller share of CPU time, is not busy.
const BYTES_MIN: i64 = 1 << 20;
const CPU_MIN: f64 = 0.05;

/// Splits the window by the calls of the thread, and each call into its own requests and, in the rest, the
/// time in which another thread was in a sync call.
pub(crate) fn leaves(
    moment: &Moment,
    behalf: &Behalf<'_>,
    utid: Utid,
    (begin, end): (Ns, Ns),
) -> Walk {
    let mut leaves = Vec::new();
    let mut at = begin;
    for call in moment.calls(utid, (begin, end)) {
        let (from, to) = (call.begin.max(at), call.end.min(end));
        if to <= from {
            continue;
        }
        if from > at {
            push(&mut leaves, (at, from), outside(utid));
        }
        in_call(moment, behalf, call.id, utid, (from, to), &mut leaves);
        at = to;
    }
    if end > at {
        push(&mut leaves, (at, end), outside(utid));
    }
    Walk {
        leaves,
        steps: Vec::new(),
    }
}

fn push(leaves: &mut Vec<Leaf>, (begin, end): (Ns, Ns), why: Why) {
    if end > begin {
        leaves.push(Leaf {
            begin,
            end,
            why,
            hop: None,
        });
    }
}

/// Between calls a thread runs, or is runnable.
fn outside(utid: Utid) -> Why {
    Why::new("cpu_running", Who::Thread(utid), Grade::C)
}

fn in_call(
    moment: &Moment,
    behalf: &Behalf<'_>,
    call: i64,
    utid: Utid,
    (begin, end): (Ns, Ns),
    leaves: &mut Vec<Leaf>,
) {
    let own = |from: Ns, to: Ns| {
        moment.requests.iter().filter(move |request| {
            request.utid == Some(utid)
                && request.begin < to
                && request.end > from
                && request.begin >= begin
        })
    };
    let mut at = begin;
    let mut requests: Vec<_> = own(begin, end).collect();
    requests.index_sort_by_ints(|request| [request.begin, request.id, 0]);
    for request in requests {
        let (from, to) = (request.begin.max(at), request.end.min(end));
        if to <= from {
            continue;
        }
        rest(moment, behalf, call, utid, (at, from), leaves);
        // The request is the call's own; that the call waited for it is only likely.
        let pieces = crate::blocks::split(moment, behalf, request, utid, (from, to));
        for (from, to, mut why) in pieces {
            why.grade = why.grade.min(Grade::B);
            push(leaves, (from, to), why);
        }
        at = to;
    }
    rest(moment, behalf, call, utid, (at, end), leaves);
}

/// Time of a call without its own requests: attributed to another thread's sync call, if any.
fn rest(
    moment: &Moment,
    _behalf: &Behalf<'_>,
    call: i64,
    utid: Utid,
    (begin, end): (Ns, Ns),
    leaves: &mut Vec<Leaf>,
) {
    if end <= begin {
        return;
    }
    let mut syncs: Vec<_> = moment
        .syncs()
        .filter(|other| other.utid != utid)
        .filter(|other| other.begin < end && other.end > begin)
        .collect();
    // The longest overlap counts.
    syncs.index_sort_by_key(|other| {
        (
            std::cmp::Reverse(other.end.min(end) - other.begin.max(begin)),
            other.id,
        )
    });
    let unknown = Why::unknown("unknown").by(Proof::Call(call));
    let Some(sync) = syncs.first() else {
        push(leaves, (begin, end), unknown);
        return;
    };
    let (from, to) = (sync.begin.max(begin), sync.end.min(end));
    push(leaves, (begin, from), unknown);
    let device = moment
        .requests
        .iter()
        .filter(|request| request.begin < to && request.end > from)
        .max_by_key(|request| (request.bytes, request.id))
        .map(|request| Object::Device(request.dev_name));
    let why = Why::new("journal_wait", Who::Thread(sync.utid), Grade::C)
        .about(device)
        .by(Proof::Call(sync.id));
    push(leaves, (from, to), why);
    push(leaves, (to, end), unknown);
}

/// Actors that were busy in the window, which alone does not make them a cause.
pub(crate) fn neighbours(
    moment: &Moment,
    blame: &Blame<'_>,
    (begin, end): (Ns, Ns),
) -> Vec<Neighbour> {
    let root = blame.root;
    let is_left_out = |utid: Utid| {
        moment.people.same_process(utid, root)
            || moment
                .people
                .get(utid)
                .is_some_and(|person| person.is_tracer)
    };
    let mut bytes: FxHashMap<Utid, i64> = FxHashMap::default();
    for request in &moment.requests {
        let Some(utid) = request.utid else { continue };
        if request.begin < end && request.end > begin {
            let (who, _) = blame.behalf.of(utid, request, root);
            let utid = match who {
                Who::Thread(utid) => utid,
                _ => utid,
            };
            *bytes.entry(utid).or_default() += request.bytes;
        }
    }
    let mut busy: Vec<(Utid, i64)> = bytes
        .into_iter()
        .filter(|(utid, bytes)| *bytes >= BYTES_MIN && !is_left_out(*utid))
        .collect();
    busy.index_sort_by_key(|(utid, bytes)| (std::cmp::Reverse(*bytes), *utid));
    let mut found: Vec<Neighbour> = busy
        .into_iter()
        .take(NEIGHBOURS_MAX)
        .map(|(utid, bytes)| Neighbour {
            actor: blame.actor_of(utid),
            what: format!("{:.1} MiB of disk I/O", bytes as f64 / (1 << 20) as f64),
            bytes: Some(bytes),
            cpu_ns: None,
        })
        .collect();
    let mut ran: Vec<(Utid, Ns)> = moment.time_on_cpu((begin, end)).into_iter().collect();
    ran.retain(|(utid, time)| {
        *time as f64 >= CPU_MIN * (end - begin) as f64 && !is_left_out(*utid)
    });
    ran.index_sort_by_key(|(utid, time)| (std::cmp::Reverse(*time), *utid));
    found.extend(
        ran.into_iter()
            .take(NEIGHBOURS_MAX)
            .map(|(utid, time)| Neighbour {
                actor: blame.actor_of(utid),
                what: format!("{} on CPU", crate::sentence::length(time)),
                bytes: None,
                cpu_ns: Some(time),
            }),
    );
    found
}
