//! What one sleep was for. The first matching rule decides; each rule relies on weaker evidence
//! than those before it.

pub(crate) mod sleep;
mod stacks;

use whyslow_model::Ns;

pub(crate) use self::sleep::{Sleep, follow};
pub(crate) use self::stacks::stack_has;
use self::stacks::{JOURNAL, SWAP, WRITEBACK, for_writeback, throttled, waiting_in, with_proof};

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::frozen::{file_system, frozen};
use crate::holders;
use crate::network::name_server::name_server;
use crate::network::{from_network, sent_here, timed_out, unreplied};
use crate::peers;
use crate::polling;
use crate::report::Grade;
use crate::wait_kind::{Wait, WaitKind, has_expired};
use crate::window_slice::{
    Call, Cause, Context, LockWait, Segment, State, TextId, Utid, Wake, WindowSlice,
};

/// Softirq vector numbers (in the order of the kernel's `softirq_to_name`).
const TIMER_SOFTIRQ: i32 = 1;
const NET_RX_SOFTIRQ: i32 = 3;
const HRTIMER_SOFTIRQ: i32 = 8;

/// A runtime reports an acquired lock at most this much later.
const LAST_WAIT_NS: Ns = 1_000_000;

pub(crate) fn classify(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    sleep: &Segment,
) -> Sleep {
    let call = slice.call_at(sleep.utid, sleep.begin);
    if sleep.state == State::Stopped {
        return Sleep::Is(stopped(slice, sleep));
    }
    let wait = Wait::of(slice, sleep, call);
    if wait.kind == WaitKind::Frozen {
        return Sleep::Is(frozen(slice, sleep));
    }
    if let Some(reason) = file_system(slice, sleep) {
        return Sleep::Is(reason);
    }
    if let Some(reason) = imposed(slice, attribution, sleep) {
        return reason;
    }
    // The timeouts of a resolver are not resumed: each is for another query.
    if let Some(call) = call
        && name_server(slice, call).is_none()
        && let Some((last, call)) = polling::resumed(slice, sleep, call)
    {
        let found = by_its_end(slice, attribution, &last, (Some(call), wait));
        return polling::at_most(Grade::B, found);
    }
    by_its_end(slice, attribution, sleep, (call, wait))
}

/// By what ended the sleep.
fn by_its_end(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    sleep: &Segment,
    (call, wait): (Option<&Call>, Wait),
) -> Sleep {
    let range = (sleep.begin, sleep.end);
    match sleep.cause {
        Cause::Request(id) | Cause::Worker(id)
            if slice
                .request(id)
                .is_some_and(|request| wait.may_end_with(sleep, request))
                && (sleep.cause == Cause::Request(id) || is_passed_on(slice, sleep)) =>
        {
            let mechanism = stack_has(slice, sleep.utid, range, &SWAP).then_some("swap_in");
            return Sleep::Request { id, mechanism };
        }
        Cause::Packet(id) => {
            if let Some(found) = sent_here(slice, sleep, id) {
                return found;
            }
        }
        _ => {}
    }
    if let Some(found) = timed_lock_wait(slice, sleep, call) {
        return found;
    }
    let Some(wake) = sleep.wakeup else {
        if let Some(waker) = call.and_then(|call| holders::final_waker(slice, sleep, call)) {
            return in_task(slice, sleep, (call, wait), waker);
        }
        let waiting = call.filter(|_| sleep.end >= slice.recording_end);
        let not_replied = waiting.and_then(|call| peers::not_replied(slice, sleep, call));
        let found = not_replied.or_else(|| received(slice, sleep, (call?, wait)));
        return found.unwrap_or_else(|| Sleep::Is(without_wakeup(slice, sleep, call)));
    };
    let wake = slice.wake(wake);
    if sleep.context != Context::Task && sleep.context != Context::Unknown {
        return in_interrupt(slice, attribution, sleep, (call, wait), wake);
    }
    let Some(waker) = sleep.waker else {
        return Sleep::Is(Reason::unknown("unknown"));
    };
    in_task(slice, sleep, (call, wait), waker)
}

/// A program's lock wait in pieces: runtimes wake up now and then to check whether the lock is
/// free, by a timer or through an unrelated wakeup, and wait again. What ended such a piece did not
/// hold the lock; the holder is known from the runtime, or guessed from samples. The release of the
/// lock ends the last piece.
fn timed_lock_wait(slice: &WindowSlice, sleep: &Segment, call: Option<&Call>) -> Option<Sleep> {
    if !slice.text(call?.name).starts_with("futex") {
        return None;
    }
    let wait = slice.runtime_wait(sleep.utid, sleep.begin)?;
    let is_last = wait.end < sleep.end + LAST_WAIT_NS;
    if is_last || wait.holder.is_some() && sleep.waker == wait.holder {
        return None;
    }
    let grade = if wait.is_sure { Grade::B } else { Grade::C };
    let target = wait
        .holder
        .map_or(BlameTarget::Unknown, BlameTarget::Thread);
    let reason = Reason::new("lock_program", target, grade)
        .about(wait.object.map(Object::Lock))
        .by(Proof::LockWait(wait.id));
    Some(match wait.holder {
        Some(holder) => follow(sleep, holder, reason),
        // The holder is unknown, but this was not a sleep of the thread by its own timer.
        None => Sleep::Is(reason),
    })
}

/// Whether a worker only passed on the completion of a request. Journal and writeback threads also
/// work between requests.
fn is_passed_on(slice: &WindowSlice, sleep: &Segment) -> bool {
    let waker = sleep
        .waker
        .map_or("", |waker| slice.thread_table.comm(waker));
    let range = (sleep.begin, sleep.end);
    (waker.starts_with("kworker") || waker.starts_with("ksoftirqd"))
        && !stack_has(slice, sleep.utid, range, &JOURNAL)
        && !stack_has(slice, sleep.utid, range, &WRITEBACK)
}

/// Waits that the kernel imposes and reports in events of their own. A timer or a request ends
/// them, but is not the cause.
fn imposed(slice: &WindowSlice, attribution: &Attribution<'_>, sleep: &Segment) -> Option<Sleep> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let covers = |begin: Ns, end: Ns| begin <= middle && middle < end;
    for work in slice.work_of(sleep.utid) {
        if !covers(work.begin, work.end) {
            continue;
        }
        let object = work.dev_name.map(Object::Device);
        let (mechanism, (target, grade)) = match slice.text(work.kind) {
            // All writers that dirty pages of the device are throttled, not only the heavy ones.
            "dirty_throttle" => ("dirty_throttle", attribution.dirtier(work.dev, sleep.utid)),
            "reclaim_throttle" => ("memory_throttle", attribution.memory_user(sleep.utid)),
            _ => continue,
        };
        let reason = Reason::new(mechanism, target, grade);
        return Some(Sleep::Is(reason.about(object).by(Proof::Work(work.id))));
    }
    let reclaim = slice
        .reclaims_of(sleep.utid)
        .iter()
        .find(|row| covers(row.begin, row.end))?;
    if slice.text(reclaim.kind) == "kswapd" {
        return None;
    }
    let (target, grade) = attribution.memory_user(sleep.utid);
    Some(Sleep::Is(Reason::new("reclaim", target, grade)))
}

/// A wait for data of a network socket, in a call that returned data, was for its peer, whatever
/// woke the thread.
fn received(slice: &WindowSlice, sleep: &Segment, (call, wait): (&Call, Wait)) -> Option<Sleep> {
    let class = call.fd_class.map_or("", |class| slice.text(class));
    let is_receive =
        wait.kind == WaitKind::Receive && peers::socket_calls::is_receiving(slice, call);
    let has_data = call.ret.is_some_and(|bytes| bytes > 0);
    let is_lossy = slice.is_lossy(None, (sleep.begin, sleep.end + 1));
    if !class.starts_with("inet") || !is_receive || !has_data || is_lossy {
        return None;
    }
    let found = from_network(slice, sleep, Some(call), None);
    Some(polling::at_most(Grade::B, found))
}

fn without_wakeup(slice: &WindowSlice, sleep: &Segment, call: Option<&Call>) -> Reason {
    let is_last = sleep.end >= slice.recording_end;
    // A lost wakeup came before the thread ran again, an unknown time before.
    if !is_last && slice.is_lossy(None, (sleep.begin, sleep.end + 1)) {
        return Reason::unknown("lost");
    }
    let reason = Reason::unknown(if is_last { "still_blocked" } else { "unknown" });
    match call {
        Some(call) => reason
            .about(call.path.map(Object::File))
            .by(Proof::Call(call.id)),
        None => reason,
    }
}

fn in_interrupt(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    sleep: &Segment,
    (call, wait): (Option<&Call>, Wait),
    wake: Option<&Wake>,
) -> Sleep {
    let vector = wake.and_then(|wake| wake.vector);
    let is_timer = sleep.context == Context::Timer
        || (sleep.context == Context::Softirq
            && matches!(vector, Some(TIMER_SOFTIRQ | HRTIMER_SOFTIRQ)));
    let expired = call.filter(|call| has_expired(slice, call));
    if let Some(waker) = call.and_then(|call| holders::final_waker(slice, sleep, call)) {
        return in_task(slice, sleep, (call, wait), waker);
    }
    let is_plain_irq = sleep.context == Context::Irq && handler_name(slice, wake).is_none();
    if let Some(call) = expired
        && (is_timer || is_plain_irq)
    {
        if let Some(server) = name_server(slice, call) {
            return Sleep::Is(unreplied(slice, sleep, server).by(Proof::Call(call.id)));
        }
        if let Some(found) = polling::polled(slice, sleep, call) {
            return found;
        }
        let lost = timed_out(slice, sleep, call);
        if let Some(found) = lost.or_else(|| peers::not_replied(slice, sleep, call)) {
            return found;
        }
        let grade = if is_timer { Grade::A } else { Grade::B };
        let object = call.path.or(Some(call.name)).map(|name| match call.path {
            Some(_) => Object::Peer(name),
            None => Object::Function(name),
        });
        let reason = Reason::new("timer_sleep", BlameTarget::Timer, grade);
        return Sleep::Is(reason.about(object).by(Proof::Call(call.id)));
    }
    if let Some(reason) = throttled(slice, attribution, sleep) {
        return Sleep::Is(reason);
    }
    if is_timer {
        // The kernel itself set the timer: a polling driver, or a queue limit.
        let function = waiting_in(slice, sleep);
        let reason = Reason::new("timer_sleep", BlameTarget::Timer, Grade::A);
        return Sleep::Is(reason.about(function.map(Object::Function)));
    }
    let is_net = sleep.context == Context::Softirq && vector.is_none_or(|nr| nr == NET_RX_SOFTIRQ);
    // Packets are processed at the end of any interrupt.
    if is_net || wait.is_for_socket() {
        return match (wait.kind, from_network(slice, sleep, call, wake)) {
            (WaitKind::Send, Sleep::Is(reason)) if reason.mechanism == "network_remote" => {
                Sleep::Is(Reason {
                    mechanism: "send_buffer",
                    ..reason
                })
            }
            (_, found) => found,
        };
    }
    let name = handler_name(slice, wake);
    let target = name.map_or(BlameTarget::Unknown, BlameTarget::Interrupt);
    Sleep::Is(Reason::new("device_irq", target, Grade::B))
}

fn handler_name(slice: &WindowSlice, wake: Option<&Wake>) -> Option<TextId> {
    let wake = wake?;
    let handlers = slice.handlers(wake.cpu?, (wake.ts, wake.ts + 1));
    let hard = handlers.filter(|handler| slice.text(handler.kind) == "hard");
    hard.last().and_then(|handler| handler.name)
}

fn in_task(
    slice: &WindowSlice,
    sleep: &Segment,
    (call, wait): (Option<&Call>, Wait),
    waker: Utid,
) -> Sleep {
    if let Some(lock) = lock_around(slice, sleep) {
        let reason = kernel_lock(slice, lock, waker);
        let pieces = holders::of_lock(slice, sleep, lock, waker);
        return Sleep::For { reason, pieces };
    }
    if let Some((address, pieces)) = holders::of_futex(slice, sleep, waker) {
        let grade = pieces.iter().map(|piece| piece.grade).min();
        let reason = Reason::new(
            "lock_futex",
            BlameTarget::Thread(waker),
            grade.unwrap_or(Grade::B),
        );
        let call = call.map(|call| Proof::Call(call.id));
        let reason = reason.about(Some(Object::Futex(address)));
        let reason = call.map_or(reason, |call| reason.by(call));
        return Sleep::For { reason, pieces };
    }
    if wait.kind == WaitKind::Futex {
        let reason = Reason::new("lock_futex", BlameTarget::Thread(waker), Grade::B);
        return follow(sleep, waker, reason);
    }
    if let Some(reason) = for_writeback(slice, sleep, waker) {
        return follow(sleep, waker, reason);
    }
    if wait.kind == WaitKind::Child
        && let Some(grade) = slice.thread_table.is_child(waker, sleep.utid)
    {
        let reason = Reason::new("child_wait", BlameTarget::Thread(waker), grade);
        return follow(sleep, waker, reason);
    }
    if let Some(reason) = handed_over(slice, call, waker, sleep.end) {
        return follow(sleep, waker, reason);
    }
    if let Some(reason) = wait.by_thread(slice, (sleep, call), waker) {
        return follow(sleep, waker, with_proof(slice, sleep, reason));
    }
    let is_kernel = slice.thread_table.is_kernel(waker);
    // Kernel threads may receive packets, too.
    let peer = call.filter(|_| is_kernel);
    let peer = peer.and_then(|call| peers::peer_of_sleep(slice, sleep, call));
    if let Some(own) = peer.filter(|(peer, _)| peers::is_own(slice, *peer))
        && let Some(found) = peers::at_other_end(slice, sleep, call, own)
    {
        return found;
    }
    if let Some(function) = waiting_in(slice, sleep) {
        let reason = Reason::new("kernel_wait", BlameTarget::Thread(waker), Grade::B);
        let reason = reason.about(Some(Object::Function(function)));
        return follow(sleep, waker, reason);
    }
    // A kernel worker serves all processes: a wakeup by it does not show for which one it worked.
    let grade = if is_kernel { Grade::C } else { Grade::B };
    follow(
        sleep,
        waker,
        Reason::new("woken_by", BlameTarget::Thread(waker), grade),
    )
}

fn kernel_lock(slice: &WindowSlice, lock: &LockWait, waker: Utid) -> Reason {
    let functions = slice.functions(lock.callsite).iter();
    let mut functions = functions.map(|id| slice.text(*id));
    let is_inode = functions.any(|function| {
        function.starts_with("xfs_ilock")
            || function.starts_with("inode_lock")
            || function.contains("file_buffered_write")
            || function.contains("file_write_iter")
            || function.contains("splice_read")
            || function == "lookup_slow"
            || function == "path_openat"
    });
    let mechanism = if is_inode {
        "lock_inode"
    } else {
        "lock_kernel"
    };
    Reason::new(mechanism, BlameTarget::Thread(waker), Grade::A)
        .about(Some(Object::Lock(lock.lock)))
        .by(Proof::LockWait(lock.id))
}

/// The kernel lock wait that a sleep is part of.
fn lock_around<'m>(slice: &'m WindowSlice, sleep: &Segment) -> Option<&'m LockWait> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    slice
        .lock_waits(sleep.utid)
        .find(|lock| lock.begin <= middle && middle < lock.end)
}

/// A pipe, local socket or eventfd on which one side waits for the other.
fn handed_over(slice: &WindowSlice, call: Option<&Call>, waker: Utid, at: Ns) -> Option<Reason> {
    let call = call?;
    let is_waiting = matches!(
        slice.text(call.name),
        "read"
            | "readv"
            | "recvfrom"
            | "recvmsg"
            | "poll"
            | "ppoll"
            | "select"
            | "pselect6"
            | "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "accept"
            | "accept4"
            | "write"
            | "writev"
            | "sendto"
            | "sendmsg"
            | "connect"
            | "splice"
            | "tee"
    );
    if !is_waiting {
        return None;
    }
    let other = slice.call_at(waker, at)?;
    let class = other.fd_class.map(|class| slice.text(class));
    let mechanism = match class {
        Some("pipe") => "pipe_wait",
        Some("unix" | "eventfd" | "socket" | "inet" | "inet6") => "local_ipc",
        _ => return None,
    };
    let is_same = call.path.is_some() && call.path == other.path;
    let grade = if is_same || call.path.is_none() {
        Grade::A
    } else {
        Grade::B
    };
    let object = other.path.map(Object::File);
    Some(
        Reason::new(mechanism, BlameTarget::Thread(waker), grade)
            .about(object)
            .by(Proof::Call(other.id)),
    )
}

fn stopped(slice: &WindowSlice, sleep: &Segment) -> Reason {
    let pid = slice
        .thread_table
        .get(sleep.utid)
        .and_then(|thread_info| thread_info.pid);
    let stops = slice.signals.iter().filter(|signal| {
        slice.text(signal.action) == "stop"
            && Some(signal.pid) == pid
            && signal.ts <= sleep.begin + 1_000_000
    });
    match stops.max_by_key(|signal| signal.ts) {
        Some(signal) => {
            let target = signal
                .sender
                .map_or(BlameTarget::Unknown, BlameTarget::Thread);
            Reason::new("signal_stop", target, Grade::A).about(Some(Object::Function(signal.name)))
        }
        // The thread that resumed it is usually the one that stopped it.
        None => Reason::new(
            "signal_stop",
            sleep
                .waker
                .map_or(BlameTarget::Unknown, BlameTarget::Thread),
            Grade::B,
        ),
    }
}

/// Whether a thread lost the CPU because its cgroup had used up its quota. Since Linux 6.18
/// throttled threads leave the CPU on return to user space, in task work.
pub(crate) fn is_throttled(slice: &WindowSlice, segment: &Segment) -> bool {
    if segment.state != (State::Runnable { preempted: true }) {
        return false;
    }
    let Some(stack) = slice.stack_at(segment.utid, (segment.begin, segment.end)) else {
        return false;
    };
    let functions = slice.functions(stack.callsite).iter();
    let functions: Vec<&str> = functions.map(|id| slice.text(*id)).collect();
    functions.contains(&"task_work_run")
        && functions.iter().any(|function| {
            matches!(
                *function,
                "irqentry_exit_to_user_mode"
                    | "exit_to_user_mode_loop"
                    | "syscall_exit_to_user_mode"
                    | "throttle_cfs_rq_work"
                    | "do_syscall_64"
            )
        })
}
