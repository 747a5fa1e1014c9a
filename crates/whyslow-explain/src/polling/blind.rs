//! Short sleeps in a row without a call in between: the thread polls for something that no call shows,
//! such as a value in memory.

use whyslow_model::Ns;

use super::is_sleep;
use crate::window_slice::{Call, State, Utid, WindowSlice};

/// Maximum length of a sleep …
const SLEEP_MAX_NS: Ns = 60_000_000;
/// … of this many in a row …
const COUNT_MIN: usize = 3;
/// … with at most this time in between.
const BETWEEN_NS: Ns = 2_000_000;
/// Sleeps of a run that are examined before and after one; the rest would take quadratic time.
const COUNT_MAX: usize = 1024;
/// A run has to be this many times as long as its last sleep for its end to show what it was for.
const LONGER: Ns = 10;

/// Sleeps in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    begin: Ns,
    /// Begin of the last sleep.
    last: Ns,
    end: Ns,
}

/// The run that a sleep is part of; none if there are too few others.
pub(super) fn run(slice: &WindowSlice, sleep: &Call) -> Option<Run> {
    let calls = slice.calls(sleep.utid, (slice.begin, slice.end));
    let place = calls.binary_search_by_key(&sleep.begin, |call| call.begin);
    let place = place.ok()?;
    let is_link = |pair: &&[Call]| {
        let (before, after) = (&pair[0], &pair[1]);
        let is_short = |call: &Call| call.end - call.begin <= SLEEP_MAX_NS;
        let is_same = before.name == after.name && is_sleep(slice, after);
        is_same && is_short(before) && is_short(after) && after.begin - before.end <= BETWEEN_NS
    };
    let before = calls[..=place].windows(2).rev();
    let before = before.take(COUNT_MAX).take_while(is_link).count();
    let after = calls[place..].windows(2);
    let after = after.take(COUNT_MAX).take_while(is_link).count();
    (before + after + 1 >= COUNT_MIN).then(|| Run {
        begin: calls[place - before].begin,
        last: calls[place + after].begin,
        end: calls[place + after].end,
    })
}

/// The thread of the same process that computed all the time and stopped just before the polling
/// did, if there is only one: virtual machines poll until all threads have stopped.
pub(super) fn polled_for(slice: &WindowSlice, utid: Utid, run: Run) -> Option<Utid> {
    if run.end - run.begin < LONGER * (run.end - run.last) {
        return None;
    }
    let upid = slice.thread_table.upid(utid)?;
    let threads = slice.thread_table.threads_of(upid).iter();
    let mut found = threads.filter(|other| **other != utid).filter(|other| {
        let stopped = computed_until(slice, **other, run.begin);
        stopped.is_some_and(|stopped| 2 * run.last - run.end <= stopped && stopped <= run.end)
    });
    let thread = *found.next()?;
    found.next().is_none().then_some(thread)
}

/// When a thread that computes at a time entered the kernel for the first time after that.
fn computed_until(slice: &WindowSlice, utid: Utid, at: Ns) -> Option<Ns> {
    let calls = slice.calls(utid, (at, slice.end));
    let call = calls.first();
    if call.is_some_and(|call| call.begin <= at) {
        return None;
    }
    let call = call.map_or(Ns::MAX, |call| call.begin);
    let computes = |state| matches!(state, State::Running | State::Runnable { .. });
    let states = slice.states(utid, (at, slice.end));
    let is_there = states.first().is_some_and(|first| first.begin <= at);
    let mut later = states.iter().filter(|state| !computes(state.state));
    let until = later.next().map_or(Ns::MAX, |state| state.begin).min(call);
    (is_there && until > at && until < Ns::MAX).then_some(until)
}
