//! Who held a lock while somebody waited for it.
//!
//! The one that woke the waiter in the end held the lock for all of the wait only if nobody else had
//! it meanwhile. A lock that was free for a moment may have been taken by a thread that never had to
//! wait. So the wait is cut at each release that was seen, and each piece belongs to the one who
//! released at its end.

use whyslow_model::Ns;

use crate::moment::{Call, Context, Futex, LockWait, Moment, Segment, State, Utid, Word};
use crate::report::Grade;

/// A part of a wait, and who was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) grade: Grade,
}

/// Cuts a wait at the releases, of which the last is that by the waker.
fn cut(sleep: &Segment, mut releases: Vec<(Ns, Utid)>, waker: Utid) -> Vec<Piece> {
    releases.retain(|(at, _)| sleep.begin < *at && *at < sleep.end);
    releases.sort_unstable();
    releases.dedup();
    // Acquisitions without a wait leave no trace: where the lock changed hands once, it may have more often.
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

/// Holders of a lock of the kernel: it is released where a thread that waits for it is woken.
pub(crate) fn of_lock(
    moment: &Moment,
    sleep: &Segment,
    lock: &LockWait,
    waker: Utid,
) -> Vec<Piece> {
    let mut releases = Vec::new();
    for wait in moment.waits_for(lock.lock) {
        if wait.utid == sleep.utid || wait.end <= sleep.begin || wait.begin >= sleep.end {
            continue;
        }
        for state in moment.states(wait.utid, (wait.begin, wait.end)) {
            let slept = matches!(state.state, State::Sleeping | State::Uninterruptible);
            if let (true, Some(by)) = (slept && !state.is_open, state.waker) {
                releases.push((state.end, by));
            }
        }
    }
    cut(sleep, releases, waker)
}

/// Between two looks at a lock, if the CPU was busy.
const LOOKS_NS: Ns = 20_000_000;
/// Who looks more often at a time polls, and to follow that would cost the square of it.
const LOOKS_MAX: usize = 256;

/// Who ends a wait that is made of several at one address, each but the last ended by its own time. Runtimes
/// look at locks so: HotSpot's first waiter for a monitor after 1, 8, 64, 512 and then each 1000 ms, in case
/// that its wakeup was lost. It asked for no time.
pub(crate) fn in_the_end(moment: &Moment, sleep: &Segment) -> Option<Utid> {
    let waits = moment.futex_waits(sleep.utid);
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let place = waits
        .partition_point(|wait| wait.begin <= middle)
        .checked_sub(1)?;
    let mut before = waits.get(place).filter(|wait| middle < wait.end)?;
    for wait in waits[place + 1..].iter().take(LOOKS_MAX) {
        let between = (before.end, wait.begin);
        let mut calls = moment.calls(sleep.utid, between).iter();
        // What guards the wait itself may be let go, to nobody.
        let is_beside = |call: &Call| call.begin < between.0 || between.1 <= call.begin;
        let is_unlock = |call: &Call| moment.word(call.name) == "futex" && call.ret == Some(0);
        let is_same = wait.address == before.address
            && between.1 - between.0 <= LOOKS_NS
            && calls.all(|call| is_beside(call) || is_unlock(call));
        if !is_same {
            return None;
        }
        let states = moment.states(sleep.utid, (wait.begin, wait.end)).iter();
        let slept = states.rev().find(|one| one.state == State::Sleeping)?;
        match slept.context {
            Context::Task | Context::Unknown => return slept.waker,
            Context::Timer | Context::Irq | Context::Softirq => before = wait,
        }
    }
    None
}

/// Address and holders of a lock of user space; none if the wait is not for one, or the calls were
/// not recorded.
pub(crate) fn of_futex(
    moment: &Moment,
    sleep: &Segment,
    waker: Utid,
) -> Option<(Word, Vec<Piece>)> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let waits = moment.futex_waits(sleep.utid).iter();
    let wait = waits
        .rev()
        .find(|futex| futex.begin <= middle && middle < futex.end)?;
    let wakes = moment.futex_wakes(wait.upid, wait.address);
    let ends_it =
        |wake: &Futex| wake.utid == waker && wake.begin <= sleep.end && sleep.end <= wake.end;
    // The call that ends this wait reaches beyond its end, and is the waker's own.
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
