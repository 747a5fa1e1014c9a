//! Requests that wait for work: blocked pops, long polls, subscriptions.
//!
//! Their server has nothing to do for them until another client sends something. The thread that
//! had the request waits for events for nearly all of that time, sends no request of its own for
//! it, and replies when it has read a request from another client; or the reply came at once, and
//! what followed later are notifications. A server that waits for a backend, a
//! lock or a timer does not look like this.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::SyscallRow;
use whyslow_model::{Ns, Window};

use super::findings::RequestExplainer;

/// Calls in which a thread waits for events of many objects.
const EVENT_WAITS: [&str; 7] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
];
/// Minimum share of the time in which the thread waited for events.
const IDLE_MIN: f64 = 0.8;

/// If this part of the requests waited for work, those without a known reason for their reply did,
/// too.
const MOST: usize = 4;

/// A request in the hands of the thread that replied to it.
#[derive(Debug, Clone, Copy)]
struct Held {
    place: usize,
    begin: Ns,
    end: Ns,
    waited: Ns,
    /// End of the last wait for events before the reply.
    woken: Ns,
}

/// Which of the requests waited for work.
pub(super) fn find(
    explainer: &RequestExplainer<'_>,
    (requests, servers): (&[&Request], &Requests),
    nested: &FxHashSet<i64>,
) -> Result<Vec<bool>, AnalysisError> {
    let mut is_idle = vec![false; requests.len()];
    // The reply came without a recorded reason, for example because a timeout expired.
    let mut has_waited = vec![false; requests.len()];
    let mut held: FxHashMap<i32, Vec<Held>> = FxHashMap::default();
    for (place, request) in requests.iter().enumerate() {
        let served = explainer.threads.server_of(request).unwrap_or(request.id);
        let stretches = explainer.threads.of(request).iter();
        let Some(last) = stretches.max_by_key(|one| (one.end, one.utid)) else {
            continue;
        };
        // It waits for its own request to another server.
        if !nested.contains(&served) {
            held.entry(last.utid).or_default().push(Held {
                place,
                begin: last.begin,
                end: last.end,
                waited: 0,
                woken: last.begin,
            });
        }
    }
    add_waits(explainer, &mut held)?;
    let mut received: FxHashMap<i32, Vec<(Ns, i64)>> = FxHashMap::default();
    for row in &servers.rows {
        if let Some(utid) = row.utid.filter(|utid| held.contains_key(utid)) {
            received.entry(utid).or_default().push((row.ts, row.id));
        }
    }
    for (utid, all) in &held {
        let received = received.get(utid).map_or(&[][..], Vec::as_slice);
        for one in all {
            let request = requests[one.place];
            let own = explainer.threads.server_of(request).unwrap_or(request.id);
            let from = received.partition_point(|(ts, _)| *ts < one.woken);
            let inside = received[from..].iter();
            let mut inside = inside.take_while(|(ts, _)| *ts <= one.end);
            let is_by_other = inside.any(|(_, id)| *id != own);
            let length = (one.end - one.begin).max(1);
            let waited = one.waited as f64 / length as f64;
            let is_notified = 2 * explainer.receiving(request) >= request.dur.unwrap_or(0);
            has_waited[one.place] = waited >= IDLE_MIN;
            is_idle[one.place] = (is_by_other || is_notified) && waited >= IDLE_MIN;
        }
    }
    // Of pops, some end with a timeout.
    let idle = is_idle.iter().filter(|idle| **idle).count();
    if idle > 0 && MOST * idle >= requests.len() {
        for (idle, waited) in is_idle.iter_mut().zip(has_waited) {
            *idle |= waited;
        }
    }
    Ok(is_idle)
}

/// Adds the waits for events of the threads.
fn add_waits(
    explainer: &RequestExplainer<'_>,
    held: &mut FxHashMap<i32, Vec<Held>>,
) -> Result<(), AnalysisError> {
    let all = || held.values().flatten();
    let (Some(begin), Some(end)) = (
        all().map(|one| one.begin).min(),
        all().map(|one| one.end).max(),
    ) else {
        return Ok(());
    };
    let mut projection = Projection::new(SyscallRow::TABLE);
    let [ts, dur, utid] = ["ts", "dur", "utid"].map(|name| projection.need(name));
    let name = projection.need("name");
    let window = Window::new(begin, end.saturating_add(1));
    in_order(explainer.tables, &projection.scan(Some(window)), |batch| {
        let (ts, dur, utid) = (ts.ints(batch)?, dur.ints(batch)?, utid.ints(batch)?);
        let name = name.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let (Some(utid), Some(dur)) = (utid.get(row), dur.get(row)) else {
                continue;
            };
            let Some(of_thread) = held.get_mut(&(utid as i32)) else {
                continue;
            };
            if !name
                .get(row)
                .is_some_and(|name| EVENT_WAITS.contains(&name))
            {
                continue;
            }
            let (from, to) = (ts.at(row), ts.at(row).saturating_add(dur));
            for one in of_thread {
                let inside = to.min(one.end) - from.max(one.begin);
                if inside > 0 {
                    one.waited += inside;
                }
                if inside > 0 && to <= one.end {
                    one.woken = one.woken.max(to);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}
