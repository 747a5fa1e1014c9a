//! Sleeps between two attempts: what a thread polls for is the cause, not its timer.
//!
//! A thread that is refused a lock of a file sleeps a little and tries again (`SQLITE_BUSY`); one
//! that waits for a value in memory sleeps again and again; one that a signal of its own timer
//! interrupts goes on with the same wait. None of these slept because it wanted to sleep.

mod blind;
pub(crate) mod lock_files;
mod unavailable;

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::classify::sleep::{Sleep, follow};
use crate::middlemen::WAITS_FOR_ANY;
use crate::report::Grade;
use crate::window_slice::{Call, Segment, State, TextId, Utid, WindowSlice};
use lock_files::EEXIST;

/// Calls between two sleeps that are examined.
const BETWEEN_MAX: usize = 32;
/// A thread that polls sleeps for at most this long.
const SLEEP_MAX_NS: Ns = 1_500_000_000;
/// Longest time until an interrupted wait continues.
const RESUMES_NS: Ns = 20_000_000;
/// A thread that resumes its wait more often polls; following it would take quadratic time.
const RESUMES_MAX: usize = 256;
/// Calls of a thread that are followed to the attempt that succeeds.
const CALLS_MAX: usize = 16_384;

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const ENOENT: i32 = 2;
const ECONNREFUSED: i32 = 111;
const EINPROGRESS: i32 = 115;
/// Commands of `fcntl` that lock without waiting: F_SETLK, F_OFD_SETLK …
const SETLK: [i64; 3] = [6, 13, 37];
/// … and that wait: F_SETLKW, F_OFD_SETLKW.
const SETLKW: [i64; 3] = [7, 14, 38];
/// The operation of `flock` that unlocks.
const LOCK_UN: i64 = 8;

/// Where a sleep by an own timer leads if the thread polled; `None` if it did not.
pub(crate) fn polled(slice: &WindowSlice, sleep: &Segment, call: &Call) -> Option<Sleep> {
    if call.end - call.begin > SLEEP_MAX_NS || !is_sleep(slice, call) {
        return None;
    }
    let Some((refused, next)) = attempts(slice, call) else {
        let run = blind::run(slice, call)?;
        let reason = |target| {
            let reason = Reason::new("polling", target, Grade::B);
            let reason = reason.about(Some(Object::Function(call.name)));
            reason.by(Proof::Call(call.id))
        };
        return Some(match blind::polled_for(slice, call.utid, run) {
            Some(thread) => follow(sleep, thread, reason(BlameTarget::Thread(thread))),
            None => Sleep::Is(reason(BlameTarget::Timer)),
        });
    };
    if is_lock(slice, refused)
        && let Some(path) = refused.path
        && let Some((holder, grade)) = holder(slice, path, refused, next)
    {
        let reason = Reason::new("lock_file", BlameTarget::Thread(holder), grade);
        let reason = reason.about(Some(Object::File(path)));
        return Some(follow(sleep, holder, reason.by(Proof::Call(refused.id))));
    }
    let object = refused
        .path
        .map_or(Object::Function(refused.name), Object::File);
    if let Some((holder, grade)) = lock_files::creator(slice, refused) {
        let reason = Reason::new("lock_file", BlameTarget::Thread(holder), grade);
        let reason = reason.about(Some(object));
        return Some(follow(sleep, holder, reason.by(Proof::Call(refused.id))));
    }
    if let Some((service, grade)) = unavailable::service(slice, sleep, refused) {
        let reason = Reason::new("polling", BlameTarget::Thread(service), grade);
        let reason = reason.about(refused.path.map(Object::Peer));
        return Some(follow(sleep, service, reason.by(Proof::Call(refused.id))));
    }
    let reason = Reason::new("polling", BlameTarget::Timer, Grade::A).about(Some(object));
    Some(Sleep::Is(reason.by(Proof::Call(refused.id))))
}

/// A wait that a timeout or a signal ended, and that the thread continued at once: what ended the
/// last of these waits ended all of them.
pub(crate) fn resumed<'m>(
    slice: &'m WindowSlice,
    sleep: &Segment,
    call: &'m Call,
) -> Option<(Segment, &'m Call)> {
    if !may_resume(slice.text(call.name)) || !is_without_event(slice, call) {
        return None;
    }
    let mut before = call;
    for _ in 0..RESUMES_MAX {
        let next = next_of(slice, before)?;
        let states = slice.states(next.utid, (next.begin, next.end)).iter();
        let slept = states
            .rev()
            .find(|one| matches!(one.state, State::Sleeping | State::Uninterruptible));
        if !is_without_event(slice, next) {
            let slept = slept.filter(|one| !one.is_open)?;
            let ended = Segment {
                begin: sleep.begin,
                end: sleep.end,
                ..*slept
            };
            return Some((ended, next));
        }
        before = next;
    }
    None
}

/// The same with a grade that is not better.
pub(crate) fn at_most(grade: Grade, mut found: Sleep) -> Sleep {
    match &mut found {
        Sleep::Is(reason) => reason.grade = reason.grade.min(grade),
        Sleep::For { reason, pieces } => {
            reason.grade = reason.grade.min(grade);
            for piece in pieces {
                piece.grade = piece.grade.min(grade);
            }
        }
        Sleep::Request { .. } => {}
    }
    found
}

/// The same wait, continued after a timeout or a signal.
fn next_of<'m>(slice: &'m WindowSlice, before: &Call) -> Option<&'m Call> {
    let after = (before.end, before.end + RESUMES_NS);
    let calls = slice.calls(before.utid, after).iter();
    let mut calls = calls.filter(|call| call.begin >= before.end);
    let next = calls.find(|call| !is_of_signal(slice.text(call.name)))?;
    let is_same = next.name == before.name && next.path == before.path;
    is_same.then_some(next)
}

/// Calls in and around a signal handler.
fn is_of_signal(name: &str) -> bool {
    matches!(
        name,
        "rt_sigreturn"
            | "rt_sigprocmask"
            | "rt_sigaction"
            | "setitimer"
            | "timer_settime"
            | "clock_gettime"
            | "gettimeofday"
            | "restart_syscall"
    )
}

fn may_resume(name: &str) -> bool {
    matches!(
        name,
        "poll"
            | "ppoll"
            | "select"
            | "pselect6"
            | "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "read"
            | "recvfrom"
            | "recvmsg"
            | "semop"
            | "semtimedop"
            | "wait4"
            | "waitid"
    )
}

/// Whether a wait returned without what it was for: a timeout, or a signal. The kernel restarts
/// some calls by itself; tracers show its internal error numbers.
fn is_without_event(slice: &WindowSlice, call: &Call) -> bool {
    let is_interrupted = call.errno == Some(EINTR)
        || call.errno.is_some_and(|errno| (512..=516).contains(&errno))
        || call.ret.is_some_and(|ret| (-516..=-512).contains(&ret));
    let is_multiplexer = matches!(
        slice.text(call.name),
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"
    );
    is_interrupted
        || (is_multiplexer && call.ret == Some(0))
        || (!is_multiplexer && call.errno == Some(EAGAIN))
}

/// Whether a call only lets time pass.
fn is_sleep(slice: &WindowSlice, call: &Call) -> bool {
    match slice.text(call.name) {
        "nanosleep" | "clock_nanosleep" | "pause" => true,
        // Without descriptors.
        "select" | "pselect6" | "poll" | "ppoll" => {
            call.path.is_none() && call.ret.unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// A refused call before a sleep, and the same call after it. Between two sleeps a thread may do
/// other things, such as release what it has already acquired.
fn attempts<'m>(slice: &'m WindowSlice, sleep: &Call) -> Option<(&'m Call, &'m Call)> {
    let (from, to) = (sleep.begin - SLEEP_MAX_NS, sleep.end + SLEEP_MAX_NS);
    let before = slice.calls(sleep.utid, (from, sleep.begin)).iter().rev();
    let before = before
        .filter(|call| call.end <= sleep.begin)
        .take(BETWEEN_MAX)
        .take_while(|call| !is_sleep(slice, call));
    let after = slice.calls(sleep.utid, (sleep.end, to)).iter();
    let after: Vec<&Call> = after
        .filter(|call| call.begin >= sleep.end)
        .take(BETWEEN_MAX)
        .take_while(|call| !is_sleep(slice, call))
        .collect();
    let is_again = |refused: &Call, call: &Call| {
        let is_same = (call.name, call.path) == (refused.name, refused.path);
        is_same && (refused.path.is_some() || call.flags == refused.flags)
    };
    // An event that the thread has waited for since then, in a call for that, ended the refusal.
    let mut has_event = false;
    let mut refused: Vec<&Call> = Vec::new();
    for call in before {
        // The event may be that of the refused connection itself.
        let is_current = !has_event || is_lock(slice, call) || call.errno == Some(EINPROGRESS);
        if is_current && is_refused(slice, call) {
            refused.push(call);
        }
        has_event |= has_waited(slice, call);
    }
    // That a file does not exist is often no reason to wait.
    let (locks, others): (Vec<&Call>, Vec<&Call>) =
        refused.into_iter().partition(|call| is_lock(slice, call));
    locks.into_iter().chain(others).find_map(|refused| {
        let mut again = after.iter().filter(|call| is_again(refused, call));
        let first = *again.next()?;
        // One attempt may consist of several calls.
        let refused_again = after
            .iter()
            .find(|call| is_again(refused, call) && is_refused(slice, call));
        Some((refused, refused_again.copied().unwrap_or(first)))
    })
}

/// Whether a call waited for events of descriptors and returned some.
fn has_waited(slice: &WindowSlice, call: &Call) -> bool {
    WAITS_FOR_ANY.contains(&slice.text(call.name)) && call.ret.is_some_and(|events| events > 0)
}

/// Whether a call reported that what it needs is not there yet.
fn is_refused(slice: &WindowSlice, call: &Call) -> bool {
    let Some(errno) = call.errno else {
        return false;
    };
    match slice.text(call.name) {
        "fcntl" => matches!(errno, EAGAIN | EACCES) && is_command(call, &SETLK),
        "flock" => errno == EAGAIN,
        "open" | "openat" | "openat2" | "mkdir" | "mkdirat" | "link" | "linkat" | "symlink"
        | "symlinkat" => matches!(errno, EEXIST | ENOENT | EBUSY),
        "access" | "faccessat" | "faccessat2" | "stat" | "lstat" | "newfstatat" | "statx" => {
            errno == ENOENT
        }
        "connect" => matches!(errno, ENOENT | EAGAIN) || unavailable::is_refused(slice, call),
        "recvfrom" | "recvmsg" | "read" | "accept" | "accept4" | "sendto" | "sendmsg" | "write"
        | "semop" | "semtimedop" | "mq_timedreceive" | "msgrcv" => errno == EAGAIN,
        "ioctl" => matches!(errno, EAGAIN | EBUSY),
        _ => false,
    }
}

fn is_command(call: &Call, commands: &[i64]) -> bool {
    // Some sources do not report the command.
    call.flags.is_none_or(|flags| commands.contains(&flags))
}

/// Whether a call locks or unlocks a file.
pub(crate) fn is_lock(slice: &WindowSlice, call: &Call) -> bool {
    match slice.text(call.name) {
        "flock" => true,
        "fcntl" => is_command(call, &SETLK) || is_command(call, &SETLKW),
        _ => false,
    }
}

fn is_unlock(slice: &WindowSlice, call: &Call) -> bool {
    let flags = call.flags.unwrap_or(0);
    slice.text(call.name) == "flock" && flags & LOCK_UN != 0
}

/// The thread that held the lock of a file between two attempts of another one, from the calls on
/// that file.
///
/// Whether a call of `fcntl` locks or unlocks is not recorded. The holder locked before the refused
/// attempt, was not refused itself until the next one, and its call precedes the attempt that
/// succeeded.
fn holder(slice: &WindowSlice, path: TextId, refused: &Call, next: &Call) -> Option<(Utid, Grade)> {
    let calls = || {
        let calls = slice.file_locks(path);
        calls.filter(move |call| !same_owner(slice, refused, call) && is_lock(slice, call))
    };
    let polls = |owner: &Call| {
        calls().any(|call| {
            let is_meanwhile = call.end > refused.begin && call.begin < next.end;
            is_meanwhile && is_refused(slice, call) && same_owner(slice, call, owner)
        })
    };
    let is_done = |call: &&Call| call.errno.is_none() && !call.is_open;
    let mut held: Vec<&Call> = Vec::new();
    let before = calls().filter(|call| call.end <= refused.end);
    for call in before.filter(is_done) {
        match held.iter_mut().find(|one| same_owner(slice, one, call)) {
            Some(one) => *one = call,
            None => held.push(call),
        }
    }
    held.retain(|call| !is_unlock(slice, call) && !polls(call));
    let (from, to) = granted(slice, refused);
    let released: Vec<&Call> = calls()
        .filter(is_done)
        .filter(|call| call.begin < to && call.end > from)
        .filter(|call| held.iter().any(|one| same_owner(slice, one, call)))
        .collect();
    match (held.as_slice(), released.last()) {
        (_, Some(last)) => {
            let owner = held.iter().find(|one| same_owner(slice, one, last))?;
            let is_only = released.iter().all(|call| same_owner(slice, call, last));
            Some((owner.utid, if is_only { Grade::B } else { Grade::C }))
        }
        ([one], None) => Some((one.utid, Grade::C)),
        _ => None,
    }
}

/// Whether two calls lock for one owner: locks of `fcntl` belong to the process, those of `flock`
/// to the open file.
fn same_owner(slice: &WindowSlice, a: &Call, b: &Call) -> bool {
    match slice.text(a.name) {
        "fcntl" => slice.thread_table.same_process(a.utid, b.utid),
        _ => a.utid == b.utid,
    }
}

/// Between which two times the lock became free: the last refused attempt, and the end of the first
/// one that was not refused; the end of the slice if there is none. One attempt is all calls between
/// two sleeps: it may acquire several locks, and release them when one is refused.
fn granted(slice: &WindowSlice, refused: &Call) -> (Ns, Ns) {
    let calls = slice.calls(refused.utid, (refused.begin, slice.end)).iter();
    let calls = calls.filter(|call| call.begin >= refused.begin);
    let mut last = refused.begin;
    let mut acquired = None;
    let mut is_refused_now = false;
    let mut in_attempt = 0;
    for call in calls.take(CALLS_MAX) {
        in_attempt += 1;
        let is_over = is_sleep(slice, call) || in_attempt > BETWEEN_MAX;
        if let (true, false, Some(end)) = (is_over, is_refused_now, acquired) {
            return (last, end);
        }
        if is_sleep(slice, call) {
            (acquired, is_refused_now, in_attempt) = (None, false, 0);
        } else if call.path == refused.path && is_lock(slice, call) {
            if is_refused(slice, call) {
                (last, is_refused_now) = (call.begin, true);
            } else {
                acquired = Some(call.end);
            }
        }
    }
    let end = acquired.filter(|_| !is_refused_now);
    (last, end.unwrap_or(slice.end))
}
