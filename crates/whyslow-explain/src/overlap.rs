//! What can be inferred without scheduling events: calls and requests in progress at the same time.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::attribution::Attribution;
use crate::blame::Blame;
use crate::blame_target::{BlameTarget, BlamedInterval, Object, Proof, Reason};
use crate::report::{Grade, Neighbour};
use crate::walk::Walk;
use crate::window_slice::{Utid, WindowSlice};

/// Maximum number of neighbours by I/O, and by CPU time.
const NEIGHBOURS_MAX: usize = 5;
/// A process with less I/O, or a smaller share of CPU time, is not busy.
const BYTES_MIN: i64 = 1 << 20;
const CPU_MIN: f64 = 0.05;

/// Splits the window by the calls of the thread, and each call into its own requests and, in the
/// rest, the time in which another thread was in a sync call.
pub(crate) fn intervals(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    utid: Utid,
    (begin, end): (Ns, Ns),
) -> Walk {
    let mut intervals = Vec::new();
    let mut at = begin;
    for call in slice.calls(utid, (begin, end)) {
        let (from, to) = (call.begin.max(at), call.end.min(end));
        if to <= from {
            continue;
        }
        if from > at {
            push(&mut intervals, (at, from), outside(utid));
        }
        in_call(
            slice,
            attribution,
            call.id,
            utid,
            (from, to),
            &mut intervals,
        );
        at = to;
    }
    if end > at {
        push(&mut intervals, (at, end), outside(utid));
    }
    Walk {
        intervals,
        steps: Vec::new(),
    }
}

fn push(intervals: &mut Vec<BlamedInterval>, (begin, end): (Ns, Ns), reason: Reason) {
    if end > begin {
        intervals.push(BlamedInterval {
            begin,
            end,
            reason,
            hop: None,
        });
    }
}

/// Between calls a thread runs, or is runnable.
fn outside(utid: Utid) -> Reason {
    Reason::new("cpu_running", BlameTarget::Thread(utid), Grade::C)
}

fn in_call(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    call: i64,
    utid: Utid,
    (begin, end): (Ns, Ns),
    intervals: &mut Vec<BlamedInterval>,
) {
    let own = |from: Ns, to: Ns| {
        slice.requests.iter().filter(move |request| {
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
        rest(slice, attribution, call, utid, (at, from), intervals);
        // The request is the call's own; that the call waited for it is only likely.
        let pieces = crate::blocks::split(slice, attribution, request, utid, (from, to));
        for (from, to, mut reason) in pieces {
            reason.grade = reason.grade.min(Grade::B);
            push(intervals, (from, to), reason);
        }
        at = to;
    }
    rest(slice, attribution, call, utid, (at, end), intervals);
}

/// Time of a call without its own requests: attributed to another thread's sync call, if any.
fn rest(
    slice: &WindowSlice,
    _behalf: &Attribution<'_>,
    call: i64,
    utid: Utid,
    (begin, end): (Ns, Ns),
    intervals: &mut Vec<BlamedInterval>,
) {
    if end <= begin {
        return;
    }
    let mut syncs: Vec<_> = slice
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
    let unknown = Reason::unknown("unknown").by(Proof::Call(call));
    let Some(sync) = syncs.first() else {
        push(intervals, (begin, end), unknown);
        return;
    };
    let (from, to) = (sync.begin.max(begin), sync.end.min(end));
    push(intervals, (begin, from), unknown);
    let device = slice
        .requests
        .iter()
        .filter(|request| request.begin < to && request.end > from)
        .max_by_key(|request| (request.bytes, request.id))
        .map(|request| Object::Device(request.dev_name));
    let reason = Reason::new("journal_wait", BlameTarget::Thread(sync.utid), Grade::C)
        .about(device)
        .by(Proof::Call(sync.id));
    push(intervals, (from, to), reason);
    push(intervals, (to, end), unknown);
}

/// Actors that were busy in the window, which alone does not make them a cause.
pub(crate) fn neighbours(
    slice: &WindowSlice,
    blame: &Blame<'_>,
    (begin, end): (Ns, Ns),
) -> Vec<Neighbour> {
    let root = blame.root;
    let is_left_out = |utid: Utid| {
        slice.thread_table.same_process(utid, root)
            || slice
                .thread_table
                .get(utid)
                .is_some_and(|thread_info| thread_info.is_tracer)
    };
    let mut bytes: FxHashMap<Utid, i64> = FxHashMap::default();
    for request in &slice.requests {
        let Some(utid) = request.utid else { continue };
        if request.begin < end && request.end > begin {
            let (target, _) = blame.attribution.of(utid, request, root);
            let utid = match target {
                BlameTarget::Thread(utid) => utid,
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
    let mut ran: Vec<(Utid, Ns)> = slice.time_on_cpu((begin, end)).into_iter().collect();
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
