//! What one sleep was for. The first matching rule decides; each rule relies on weaker evidence than
//! those before it.

use whyslow_model::Ns;

use crate::behalf::Behalf;
use crate::holders::{self, Piece};
use crate::leaf::{Object, Proof, Who, Why};
use crate::moment::{Call, Cause, Context, LockWait, Moment, Segment, State, Utid, Wake, Word};
use crate::network::{from_network, name_server, sent_here};
use crate::report::Grade;

/// Where a sleep leads.
#[derive(Debug)]
pub(crate) enum Sleep {
    /// Nowhere: this is the cause.
    Is(Why),
    /// To the request that ended it, possibly through a kernel worker that passed the wakeup on.
    Request {
        id: i64,
        mechanism: Option<&'static str>,
    },
    /// To threads, each for a piece of it.
    For { why: Why, pieces: Vec<Piece> },
}

/// Softirq vector numbers (in the order of the kernel's `softirq_to_name`).
const TIMER_SOFTIRQ: i32 = 1;
const NET_RX_SOFTIRQ: i32 = 3;
const HRTIMER_SOFTIRQ: i32 = 8;

/// A runtime reports an acquired lock at most this much later.
const LAST_WAIT_NS: Ns = 1_000_000;

const ETIMEDOUT: i32 = 110;
const EAGAIN: i32 = 11;

/// Journal functions in which threads wait.
const JOURNAL: [&str; 9] = [
    "jbd2_log_wait_commit",
    "start_this_handle",
    "add_transaction_credits",
    "do_get_write_access",
    "jbd2_journal_commit_transaction",
    "wait_transaction_locked",
    "xlog_",
    "xfs_log_",
    "jbd2_journal_lock_updates",
];
/// Functions in which threads wait until pages have been written back.
const WRITEBACK: [&str; 2] = ["wb_wait_for_completion", "balance_dirty_pages"];
/// Functions in which threads wait for pages under writeback, until a request completes.
const WRITTEN: [&str; 3] = [
    "folio_wait_writeback",
    "__filemap_fdatawait_range",
    "wait_on_page_writeback",
];
const SWAP: [&str; 3] = ["do_swap_page", "swap_read", "swapin_"];
/// Innermost functions that do not show what is waited for.
const SCHEDULER: [&str; 16] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "schedule_timeout",
    "io_schedule_timeout",
    "schedule_preempt_disabled",
    "bit_wait",
    "bit_wait_io",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "preempt_schedule",
    "__cond_resched",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "context_switch",
    "__wait_on_bit_lock",
];

pub(crate) fn classify(moment: &Moment, behalf: &Behalf<'_>, sleep: &Segment) -> Sleep {
    let call = moment.call_at(sleep.utid, sleep.begin);
    let range = (sleep.begin, sleep.end);
    if sleep.state == State::Stopped {
        return Sleep::Is(stopped(moment, sleep));
    }
    if let Some(why) = imposed(moment, behalf, sleep) {
        return why;
    }
    match sleep.cause {
        Cause::Request(id) | Cause::Worker(id)
            if moment.request(id).is_some()
                && (sleep.cause == Cause::Request(id) || is_passed_on(moment, sleep)) =>
        {
            let mechanism = stack_has(moment, sleep.utid, range, &SWAP).then_some("swap_in");
            return Sleep::Request { id, mechanism };
        }
        Cause::Packet(id) => {
            if let Some(found) = sent_here(moment, sleep, id) {
                return found;
            }
        }
        _ => {}
    }
    if let Some(found) = timed_lock_wait(moment, sleep, call) {
        return found;
    }
    let Some(wake) = sleep.wakeup else {
        return Sleep::Is(without_wakeup(moment, sleep, call));
    };
    let wake = moment.wake(wake);
    if sleep.context != Context::Task && sleep.context != Context::Unknown {
        return in_interrupt(moment, behalf, sleep, call, wake);
    }
    let Some(waker) = sleep.waker else {
        return Sleep::Is(Why::unknown("unknown"));
    };
    in_task(moment, sleep, call, waker)
}

/// A program's lock wait in pieces: runtimes wake up now and then to check whether the lock is free, by a
/// timer or through an unrelated wakeup, and wait again. What ended such a piece did not hold the lock; the
/// holder is known from the runtime, or guessed from samples. The release of the lock ends the last piece.
fn timed_lock_wait(moment: &Moment, sleep: &Segment, call: Option<&Call>) -> Option<Sleep> {
    if !moment.word(call?.name).starts_with("futex") {
        return None;
    }
    let wait = moment.told_wait(sleep.utid, sleep.begin)?;
    let is_last = wait.end < sleep.end + LAST_WAIT_NS;
    if is_last || wait.holder.is_some() && sleep.waker == wait.holder {
        return None;
    }
    let grade = if wait.is_sure { Grade::B } else { Grade::C };
    let who = wait.holder.map_or(Who::Unknown, Who::Thread);
    let why = Why::new("lock_program", who, grade)
        .about(wait.object.map(Object::Lock))
        .by(Proof::LockWait(wait.id));
    Some(match wait.holder {
        Some(holder) => follow(sleep, holder, why),
        // The holder is unknown, but this was not a sleep of the thread by its own timer.
        None => Sleep::Is(why),
    })
}

/// Whether a worker only passed on the completion of a request. Journal and writeback threads also work
/// between requests.
fn is_passed_on(moment: &Moment, sleep: &Segment) -> bool {
    let waker = sleep.waker.map_or("", |waker| moment.people.comm(waker));
    let range = (sleep.begin, sleep.end);
    (waker.starts_with("kworker") || waker.starts_with("ksoftirqd"))
        && !stack_has(moment, sleep.utid, range, &JOURNAL)
        && !stack_has(moment, sleep.utid, range, &WRITEBACK)
}

/// Waits that the kernel imposes and reports in events of their own. A timer or a request ends them, but
/// is not the cause.
fn imposed(moment: &Moment, behalf: &Behalf<'_>, sleep: &Segment) -> Option<Sleep> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    let covers = |begin: Ns, end: Ns| begin <= middle && middle < end;
    for work in moment.work_of(sleep.utid) {
        if !covers(work.begin, work.end) {
            continue;
        }
        let object = work.dev_name.map(Object::Device);
        let (mechanism, (who, grade)) = match moment.word(work.kind) {
            // All writers that dirty pages of the device are throttled, not only the heavy ones.
            "dirty_throttle" => ("dirty_throttle", behalf.dirtier(work.dev, sleep.utid)),
            "reclaim_throttle" => ("memory_throttle", (Who::Thread(sleep.utid), Grade::A)),
            _ => continue,
        };
        let why = Why::new(mechanism, who, grade);
        return Some(Sleep::Is(why.about(object).by(Proof::Work(work.id))));
    }
    let reclaim = moment
        .reclaims_of(sleep.utid)
        .iter()
        .find(|row| covers(row.begin, row.end))?;
    if moment.word(reclaim.kind) == "kswapd" {
        return None;
    }
    let why = Why::new("reclaim", Who::Thread(sleep.utid), Grade::A);
    Some(Sleep::Is(why))
}

fn without_wakeup(moment: &Moment, sleep: &Segment, call: Option<&Call>) -> Why {
    let is_last = sleep.end >= moment.recording_end;
    // A lost wakeup came before the thread ran again, an unknown time before.
    if !is_last && moment.is_lossy(None, (sleep.begin, sleep.end + 1)) {
        return Why::unknown("lost");
    }
    let why = Why::unknown(if is_last { "still_blocked" } else { "unknown" });
    match call {
        Some(call) => why
            .about(call.path.map(Object::File))
            .by(Proof::Call(call.id)),
        None => why,
    }
}

pub(crate) fn follow(sleep: &Segment, waker: Utid, why: Why) -> Sleep {
    let piece = Piece {
        utid: waker,
        begin: sleep.begin,
        end: sleep.end,
        grade: why.grade,
    };
    Sleep::For {
        why,
        pieces: vec![piece],
    }
}

/// Waits that the kernel imposes, recognised by the stack where no event of them was recorded.
fn throttled(moment: &Moment, behalf: &Behalf<'_>, sleep: &Segment) -> Option<Why> {
    let has = |function: &str| stack_has(moment, sleep.utid, (sleep.begin, sleep.end), &[function]);
    let (mechanism, who) = if has("balance_dirty_pages") {
        ("dirty_throttle", behalf.dirtier(None, sleep.utid).0)
    } else if has("reclaim_throttle") || has("throttle_direct_reclaim") {
        ("memory_throttle", Who::Thread(sleep.utid))
    } else {
        return None;
    };
    let why = Why::new(mechanism, who, Grade::B);
    Some(with_stack(moment, sleep, why))
}

fn in_interrupt(
    moment: &Moment,
    behalf: &Behalf<'_>,
    sleep: &Segment,
    call: Option<&Call>,
    wake: Option<&Wake>,
) -> Sleep {
    let vector = wake.and_then(|wake| wake.vector);
    let is_timer = sleep.context == Context::Timer
        || (sleep.context == Context::Softirq
            && matches!(vector, Some(TIMER_SOFTIRQ | HRTIMER_SOFTIRQ)));
    let expired = call.filter(|call| has_expired(moment, call));
    if let Some(call) = expired
        && moment.word(call.name).starts_with("futex")
        && let Some(waker) = holders::final_waker(moment, sleep)
    {
        return in_task(moment, sleep, Some(call), waker);
    }
    let is_plain_irq = sleep.context == Context::Irq && handler_name(moment, wake).is_none();
    if let Some(call) = expired
        && (is_timer || is_plain_irq)
    {
        if let Some(server) = name_server(moment, call) {
            let why = Why::new("dns_lookup", Who::Peer(server), Grade::B);
            return Sleep::Is(
                why.about(Some(Object::Peer(server)))
                    .by(Proof::Call(call.id)),
            );
        }
        let grade = if is_timer { Grade::A } else { Grade::B };
        let object = call.path.or(Some(call.name)).map(|name| match call.path {
            Some(_) => Object::Peer(name),
            None => Object::Function(name),
        });
        let why = Why::new("timer_sleep", Who::Timer, grade);
        return Sleep::Is(why.about(object).by(Proof::Call(call.id)));
    }
    if let Some(why) = throttled(moment, behalf, sleep) {
        return Sleep::Is(why);
    }
    if is_timer {
        // The kernel itself set the timer: a polling driver, or a queue limit.
        let function = waiting_in(moment, sleep);
        let why = Why::new("timer_sleep", Who::Timer, Grade::A);
        return Sleep::Is(why.about(function.map(Object::Function)));
    }
    let is_net = sleep.context == Context::Softirq && vector.is_none_or(|nr| nr == NET_RX_SOFTIRQ);
    if is_net {
        return from_network(moment, sleep, call, wake);
    }
    let name = handler_name(moment, wake);
    let who = name.map_or(Who::Unknown, Who::Interrupt);
    Sleep::Is(Why::new("device_irq", who, Grade::B))
}

fn handler_name(moment: &Moment, wake: Option<&Wake>) -> Option<Word> {
    let wake = wake?;
    let handlers = moment.handlers(wake.cpu?, (wake.ts, wake.ts + 1));
    let hard = handlers.filter(|handler| moment.word(handler.kind) == "hard");
    hard.last().and_then(|handler| handler.name)
}

/// Whether the return value of a call indicates a timeout.
fn has_expired(moment: &Moment, call: &Call) -> bool {
    match moment.word(call.name) {
        "nanosleep" | "clock_nanosleep" => call.ret == Some(0),
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2" | "io_getevents" | "io_pgetevents" => call.ret == Some(0),
        "futex" | "futex_wait" | "futex_waitv" => call.errno == Some(ETIMEDOUT),
        "recvfrom" | "recvmsg" | "recvmmsg" | "read" | "accept" | "accept4" | "semtimedop"
        | "rt_sigtimedwait" | "mq_timedreceive" => call.errno == Some(EAGAIN),
        _ => false,
    }
}

fn in_task(moment: &Moment, sleep: &Segment, call: Option<&Call>, waker: Utid) -> Sleep {
    if let Some(lock) = lock_around(moment, sleep) {
        let why = kernel_lock(moment, lock, waker);
        let pieces = holders::of_lock(moment, sleep, lock, waker);
        return Sleep::For { why, pieces };
    }
    if let Some((address, pieces)) = holders::of_futex(moment, sleep, waker) {
        let grade = pieces.iter().map(|piece| piece.grade).min();
        let why = Why::new("lock_futex", Who::Thread(waker), grade.unwrap_or(Grade::B));
        let call = call.map(|call| Proof::Call(call.id));
        let why = why.about(Some(Object::Futex(address)));
        let why = call.map_or(why, |call| why.by(call));
        return Sleep::For { why, pieces };
    }
    let name = call.map_or("", |call| moment.word(call.name));
    if name.starts_with("futex") {
        let why = Why::new("lock_futex", Who::Thread(waker), Grade::B);
        return follow(sleep, waker, why);
    }
    let range = (sleep.begin, sleep.end);
    if stack_has(moment, sleep.utid, range, &JOURNAL) {
        let why = Why::new("journal_wait", Who::Thread(waker), Grade::B);
        return follow(sleep, waker, with_stack(moment, sleep, why));
    }
    if stack_has(moment, sleep.utid, range, &WRITEBACK)
        || stack_has(moment, sleep.utid, range, &WRITTEN)
    {
        let why = Why::new("writeback_wait", Who::Thread(waker), Grade::B);
        return follow(sleep, waker, with_stack(moment, sleep, why));
    }
    if matches!(name, "wait4" | "waitid" | "waitpid")
        && let Some(grade) = moment.people.is_child(waker, sleep.utid)
    {
        let why = Why::new("child_wait", Who::Thread(waker), grade);
        return follow(sleep, waker, why);
    }
    if let Some(why) = handed_over(moment, call, waker, sleep.end) {
        return follow(sleep, waker, why);
    }
    if let Some(function) = waiting_in(moment, sleep) {
        let why = Why::new("kernel_wait", Who::Thread(waker), Grade::B);
        let why = why.about(Some(Object::Function(function)));
        return follow(sleep, waker, why);
    }
    // A kernel worker serves all processes: a wakeup by it does not show for which one it worked.
    let is_kernel = moment.people.is_kernel(waker);
    let grade = if is_kernel { Grade::C } else { Grade::B };
    follow(
        sleep,
        waker,
        Why::new("woken_by", Who::Thread(waker), grade),
    )
}

fn kernel_lock(moment: &Moment, lock: &LockWait, waker: Utid) -> Why {
    let functions = moment.functions(lock.callsite).iter();
    let mut functions = functions.map(|word| moment.word(*word));
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
    Why::new(mechanism, Who::Thread(waker), Grade::A)
        .about(Some(Object::Lock(lock.lock)))
        .by(Proof::LockWait(lock.id))
}

/// The kernel lock wait that a sleep is part of.
fn lock_around<'m>(moment: &'m Moment, sleep: &Segment) -> Option<&'m LockWait> {
    let middle = sleep.begin + (sleep.end - sleep.begin) / 2;
    moment
        .lock_waits(sleep.utid)
        .find(|lock| lock.begin <= middle && middle < lock.end)
}

/// A pipe, local socket or eventfd on which one side waits for the other.
fn handed_over(moment: &Moment, call: Option<&Call>, waker: Utid, at: Ns) -> Option<Why> {
    let call = call?;
    let is_waiting = matches!(
        moment.word(call.name),
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
    let other = moment.call_at(waker, at)?;
    let class = other.fd_class.map(|class| moment.word(class));
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
        Why::new(mechanism, Who::Thread(waker), grade)
            .about(object)
            .by(Proof::Call(other.id)),
    )
}

fn stopped(moment: &Moment, sleep: &Segment) -> Why {
    let pid = moment.people.get(sleep.utid).and_then(|person| person.pid);
    let stops = moment.signals.iter().filter(|signal| {
        moment.word(signal.action) == "stop"
            && Some(signal.pid) == pid
            && signal.ts <= sleep.begin + 1_000_000
    });
    match stops.max_by_key(|signal| signal.ts) {
        Some(signal) => {
            let who = signal.sender.map_or(Who::Unknown, Who::Thread);
            Why::new("signal_stop", who, Grade::A).about(Some(Object::Function(signal.name)))
        }
        // The thread that resumed it is usually the one that stopped it.
        None => Why::new(
            "signal_stop",
            sleep.waker.map_or(Who::Unknown, Who::Thread),
            Grade::B,
        ),
    }
}

/// Whether the stack of a wait has a function with one of these prefixes.
fn stack_has(moment: &Moment, utid: Utid, range: (Ns, Ns), wanted: &[&str]) -> bool {
    let Some(stack) = moment.stack_at(utid, range) else {
        return false;
    };
    let functions = moment.functions(stack.callsite).iter();
    functions
        .map(|word| moment.word(*word))
        .any(|function| wanted.iter().any(|wanted| function.starts_with(wanted)))
}

/// The kernel function that a thread waited in.
fn waiting_in(moment: &Moment, sleep: &Segment) -> Option<Word> {
    let stack = moment.stack_at(sleep.utid, (sleep.begin, sleep.end))?;
    let mut functions = moment.functions(stack.callsite).iter();
    functions
        .find(|word| !SCHEDULER.contains(&moment.word(**word)))
        .copied()
}

fn with_stack(moment: &Moment, sleep: &Segment, why: Why) -> Why {
    let object = waiting_in(moment, sleep).map(Object::Function);
    let why = why.about(object);
    match moment.stack_at(sleep.utid, (sleep.begin, sleep.end)) {
        Some(stack) => why.by(Proof::Stack(stack.id)),
        None => why,
    }
}

/// Whether a thread lost the CPU because its cgroup had used up its quota. Since Linux 6.18 throttled
/// threads leave the CPU on return to user space, in task work.
pub(crate) fn is_throttled(moment: &Moment, segment: &Segment) -> bool {
    if segment.state != (State::Runnable { preempted: true }) {
        return false;
    }
    let Some(stack) = moment.stack_at(segment.utid, (segment.begin, segment.end)) else {
        return false;
    };
    let functions = moment.functions(stack.callsite).iter();
    let functions: Vec<&str> = functions.map(|word| moment.word(*word)).collect();
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
