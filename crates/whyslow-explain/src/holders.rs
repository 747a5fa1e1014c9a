//! Lock holders during a wait.
//!
//! The thread that finally woke the waiter held the lock for the whole wait only if no other thread
//! acquired it in between: a free lock may have been acquired by a thread that never had to wait.
//! So the wait is split at each recorded release, and each piece is attributed to the thread that
//! released the lock at its end.

use whyslow_model::Ns;

use crate::report::Grade;
use crate::wait_kind::has_expired;
use crate::window_slice::{
    Call, Context, Futex, LockWait, Segment, State, TextId, Utid, WindowSlice,
};

/// A piece of a wait, and the thread that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) grade: Grade,
}

/// Splits a wait at the releases, of which the waker's is the last.
fn cut(sleep: &Segment, mut releases: Vec<(Ns, Utid)>, waker: Utid) -> Vec<Piece> {
    releases.retain(|(at, _)| sleep.begin < *at && *at < sleep.end);
    releases.sort_unstable();
    releases.dedup();
    // Uncontended acquisitions leave no trace: a lock that changed hands once may have done so
    // again.
    let grade = if releases.is_empty() {
        Grade::A
    } else {
        Grade::B
    };
    releases.push((sleep.end, waker));
    let mut pieces: Vec<Piece> = Vec::with_capacity(releases.len());
    let mut begin = sleep.begin;
    for (end, utid) in releases {
        match pieces.last_mut() {
            Some(last) if last.utid == utid => last.end = end,
            _ if end > begin => pieces.push(Piece {
                utid,
                begin,
                end,
                grade,
            }),
            _ => {}
        }
        begin = end;
    }
    pieces
}

/// Holders of a kernel lock. It is released when a thread that waits for it is woken.
pub(crate) fn of_lock(
    slice: &WindowSlice,
    sleep: &Segment,
    lock: &LockWait,
    waker: Utid,
) -> Vec<Piece> {
    let mut releases = Vec::new();
    for wait in slice.waits_for(lock.lock) {
        if wait.utid == sleep.utid || wait.end <= sleep.begin || wait.begin >= sleep.end {
            continue;
        }
        for state in slice.states(wait.utid, (wait.begin, wait.end)) {
            let slept = matches!(state.state, State::Sleeping | State::Uninterruptible);
            if let (true, Some(by)) = (slept && !state.is_open, state.waker) {
                releases.push((state.end, by));
            }
        }
    }
    cut(sleep, releases, waker)
}

/// Longest time between two timed waits for one lock, if the CPU was busy.
const RETRY_NS: Ns = 20_000_000;
/// Longest time from a timeout to a release that it just missed.
const LATE_NS: Ns = 1_000_000;
/// A thread with more consecutive timed waits polls; following it would take quadratic time.
const RETRIES_MAX: usize = 256;

/// Calls between two waits that do nothing for the program: Ruby checks its process id.
const WITHOUT_EFFECT: [&str; 5] = [
    "clock_gettime",
    "getpid",
    "gettid",
    "gettimeofday",
    "sched_yield",
];

/// The thread that ends a wait made of several timed waits at one address, all but the last of
/// which time out. Runtimes re-check locks this way in case a wakeup was lost: HotSpot's first
/// waiter for a monitor after 1, 8, 64, 512 and then every 1000 ms. The program itself did not set
/// a timeout.
pub(crate) fn final_waker(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<Utid> {
    if !slice.text(call.name).starts_with("futex") || !has_expired(slice, call) {
        return None;
    }
    let waits = slice.futex_waits(sleep.utid);
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let place = waits
        .partition_point(|wait| wait.begin <= middle)
        .checked_sub(1)?;
    let mut before = waits.get(place).filter(|wait| middle < wait.end)?;
    for wait in waits[place + 1..].iter().take(RETRIES_MAX) {
        let between = (before.end, wait.begin);
        let mut calls = slice.calls(sleep.utid, between).iter();
        // The lock that guards the wait itself may be released in between, without a waiter.
        let is_outside = |call: &Call| call.begin < between.0 || between.1 <= call.begin;
        let is_no_work = |call: &Call| match slice.text(call.name) {
            "futex" => call.ret == Some(0),
            name => WITHOUT_EFFECT.contains(&name),
        };
        let is_same = wait.address == before.address
            && between.1 - between.0 <= RETRY_NS
            && calls.all(|call| is_outside(call) || is_no_work(call));
        if !is_same {
            break;
        }
        // What woke it may not be recorded.
        let call = slice.call_at(sleep.utid, wait.begin);
        if call.is_some_and(|call| has_expired(slice, call)) {
            before = wait;
            continue;
        }
        let states = slice.states(sleep.utid, (wait.begin, wait.end)).iter();
        let Some(slept) = states.rev().find(|one| one.state == State::Sleeping) else {
            // It was woken before it gave up its CPU.
            return waker_of(slice, wait);
        };
        match slept.context {
            // The wakeup may have come before it gave up its CPU, too.
            Context::Task | Context::Unknown => {
                return slept.waker.or_else(|| waker_of(slice, wait));
            }
            Context::Timer | Context::Irq | Context::Softirq => before = wait,
        }
    }
    late_waker(slice, before)
}

/// The thread that released a futex just after the wait for it timed out.
fn late_waker(slice: &WindowSlice, wait: &Futex) -> Option<Utid> {
    let wakes = slice.vain_futex_wakes(wait.upid, wait.address);
    let first = wakes.partition_point(|wake| wake.begin < wait.end);
    let late = wakes[first..].iter();
    let mut late = late.take_while(|wake| wake.begin - wait.end <= LATE_NS);
    let late = late.find(|wake| wake.utid != wait.utid);
    late.map(|wake| wake.utid)
}

/// The thread whose call ended a wait.
fn waker_of(slice: &WindowSlice, wait: &Futex) -> Option<Utid> {
    let wakes = slice.futex_wakes(wait.upid, wait.address);
    let first = wakes.partition_point(|wake| wake.begin < wait.begin);
    let ended = wakes[first..].iter();
    let mut ended = ended.take_while(|wake| wake.begin < wait.end);
    let ended = ended.find(|wake| wake.utid != wait.utid);
    ended.map(|wake| wake.utid)
}

/// Address and holders of a user-space lock; none if the wait is not for one, or the calls were not
/// recorded.
pub(crate) fn of_futex(
    slice: &WindowSlice,
    sleep: &Segment,
    waker: Utid,
) -> Option<(TextId, Vec<Piece>)> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let waits = slice.futex_waits(sleep.utid).iter();
    let wait = waits
        .rev()
        .find(|futex| futex.begin <= middle && middle < futex.end)?;
    let wakes = slice.futex_wakes(wait.upid, wait.address);
    let ends_it =
        |wake: &Futex| wake.utid == waker && wake.begin <= sleep.end && sleep.end <= wake.end;
    // The call that ends this wait extends beyond it, and belongs to the waker.
    let others = wakes
        .iter()
        .filter(|wake| wake.utid != sleep.utid && !ends_it(wake));
    let releases: Vec<(Ns, Utid)> = others.map(|wake| (wake.begin, wake.utid)).collect();
    let is_proved = wakes.iter().any(ends_it);
    let mut pieces = cut(sleep, releases, waker);
    if !is_proved {
        for piece in &mut pieces {
            piece.grade = piece.grade.min(Grade::B);
        }
    }
    Some((wait.address, pieces))
}
