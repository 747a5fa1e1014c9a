//! From a window of one thread to the causes of each interval of it.
//!
//! A sleeping thread is followed to the thread that ended its sleep, for that time only. So windows
//! only shrink, the walk terminates, and every instant of the window belongs to one interval.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, BlamedInterval, Object, Proof, Reason, Step};
use crate::blocks;
use crate::classify::{Sleep, classify, is_throttled};
use crate::network::name_server;
use crate::report::Grade;
use crate::wait_kind::{Wait, WaitKind};
use crate::window_slice::{Cause, Handler, Segment, State, Utid, WindowSlice};

/// Maximum number of hops in a chain.
const DEPTH_MAX: u16 = 24;
/// A packet retransmitted to the same machine has arrived after this time.
const ARRIVES_NS: Ns = 10_000_000;
/// Maximum number of intervals of a walk; the time beyond is left unknown.
const INTERVALS_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// In order of time; together they cover the window.
    pub(crate) intervals: Vec<BlamedInterval>,
    pub(crate) steps: Vec<Step>,
}

impl Walk {
    /// A walk whose steps are not known, of consecutive intervals with their causes.
    pub(crate) fn of_pieces(pieces: Vec<blocks::Piece>) -> Self {
        let interval = |(begin, end, reason)| BlamedInterval {
            begin,
            end,
            reason,
            hop: None,
        };
        Self {
            intervals: pieces.into_iter().map(interval).collect(),
            steps: Vec::new(),
        }
    }
}

struct Task {
    utid: Utid,
    begin: Ns,
    end: Ns,
    hop: Option<u32>,
    grade: Grade,
}

struct Walker<'m> {
    slice: &'m WindowSlice,
    attribution: &'m Attribution<'m>,
    /// The explained thread.
    root: Utid,
    walk: Walk,
    tasks: Vec<Task>,
}

pub(crate) fn walk(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    root: Utid,
    window: (Ns, Ns),
) -> Walk {
    let mut walker = Walker {
        slice,
        attribution,
        root,
        walk: Walk::default(),
        tasks: vec![Task {
            utid: root,
            begin: window.0,
            end: window.1,
            hop: None,
            grade: Grade::A,
        }],
    };
    while let Some(task) = walker.tasks.pop() {
        walker.follow(&task);
    }
    let mut walk = walker.walk;
    walk.intervals
        .index_sort_by_ints(|interval| [interval.begin, interval.end, 0]);
    conserve(&mut walk.intervals, window);
    walk
}

/// Every instant belongs to one interval. Should that ever fail, overlaps are cut and gaps become
/// unknown, so that the sums stay right.
fn conserve(intervals: &mut Vec<BlamedInterval>, (begin, end): (Ns, Ns)) {
    let mut kept: Vec<BlamedInterval> = Vec::with_capacity(intervals.len());
    let mut at = begin;
    let unknown = |begin, end| BlamedInterval {
        begin,
        end,
        reason: Reason::unknown("unknown"),
        hop: None,
    };
    for mut interval in intervals.drain(..) {
        debug_assert!(
            interval.begin == at,
            "intervals leave no gap and do not overlap: {interval:?} at {at}"
        );
        if interval.begin > at {
            kept.push(unknown(at, interval.begin));
        }
        interval.begin = interval.begin.max(at);
        interval.end = interval.end.min(end);
        if interval.end > interval.begin {
            at = interval.end;
            kept.push(interval);
        }
    }
    debug_assert!(at == end, "intervals end where the window does");
    if end > at {
        kept.push(unknown(at, end));
    }
    *intervals = kept;
}

impl Walker<'_> {
    fn follow(&mut self, task: &Task) {
        let slice = self.slice;
        let mut at = task.begin;
        for segment in slice.states(task.utid, (task.begin, task.end)) {
            let begin = segment.begin.max(at);
            let end = segment.end.min(task.end);
            if begin > at {
                self.hole(task, (at, begin));
            }
            if end > begin {
                self.segment(task, segment, (begin, end));
                at = end;
            }
        }
        if task.end > at {
            self.hole(task, (at, task.end));
        }
    }

    fn hole(&mut self, task: &Task, range: (Ns, Ns)) {
        let mechanism = if self.slice.is_lossy(None, range) {
            "lost"
        } else {
            "unknown"
        };
        self.interval(task, range, Reason::unknown(mechanism));
    }

    fn interval(&mut self, task: &Task, (begin, end): (Ns, Ns), mut reason: Reason) {
        reason.grade = reason.grade.min(task.grade);
        // The thread that was waited for is known, even if what it did is not.
        if task.hop.is_some()
            && matches!(
                reason.target,
                BlameTarget::Unknown
                    | BlameTarget::Timer
                    | BlameTarget::Peer(_)
                    | BlameTarget::Interrupt(_)
            )
            && !matches!(reason.mechanism, "lost" | "network_retransmit")
        {
            reason.target = BlameTarget::Thread(task.utid);
        }
        if matches!(reason.target, BlameTarget::Timer) {
            reason.target = BlameTarget::Thread(task.utid);
        }
        self.walk.intervals.push(BlamedInterval {
            begin,
            end,
            reason,
            hop: task.hop,
        });
    }

    fn segment(&mut self, task: &Task, segment: &Segment, range: (Ns, Ns)) {
        if self.walk.intervals.len() >= INTERVALS_MAX {
            self.interval(task, range, Reason::unknown("unknown"));
            return;
        }
        match segment.state {
            State::Running => self.running(task, segment, range),
            State::Runnable { .. } => self.runnable(task, segment, range),
            State::Sleeping | State::Uninterruptible | State::Stopped => {
                self.sleeping(task, segment, range);
            }
            State::Idle => self.not_begun(task, range),
            State::Dead | State::Unknown => self.hole(task, range),
        }
    }

    /// Time on a CPU without interrupts; softirqs caused by the thread's own sending are its own
    /// time.
    fn running(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        let own = |at: Ns| {
            let mechanism = if self.is_reclaiming(task.utid, at) {
                "reclaim"
            } else {
                "cpu_running"
            };
            let reason = Reason::new(mechanism, BlameTarget::Thread(task.utid), Grade::A);
            match self.slice.call_at(task.utid, at) {
                Some(call) => reason.by(Proof::Call(call.id)),
                None => reason,
            }
        };
        let mut pieces: Vec<((Ns, Ns), Reason)> = Vec::new();
        let mut at = begin;
        let handlers = segment
            .cpu
            .map(|cpu| self.slice.handlers(cpu, (begin, end)));
        for handler in handlers.into_iter().flatten() {
            let (from, to) = (handler.begin.max(at), handler.end.min(end));
            if to <= from || self.is_own(task.utid, handler) {
                continue;
            }
            if from > at {
                pieces.push(((at, from), own(at)));
            }
            let name = handler.name.unwrap_or(handler.kind);
            let reason = Reason::new("irq_stolen", BlameTarget::Interrupt(name), Grade::A);
            pieces.push(((from, to), reason));
            at = to;
        }
        if end > at {
            pieces.push(((at, end), own(at)));
        }
        for (range, reason) in pieces {
            self.interval(task, range, reason);
        }
    }

    fn is_reclaiming(&self, utid: Utid, at: Ns) -> bool {
        let mut reclaims = self.slice.reclaims_of(utid).iter();
        reclaims.any(|row| row.begin <= at && at < row.end)
    }

    /// Softirqs within a sending call usually handle what the call sends.
    fn is_own(&self, utid: Utid, handler: &Handler) -> bool {
        self.slice.text(handler.kind) == "soft"
            && self.slice.call_at(utid, handler.begin).is_some_and(|call| {
                matches!(
                    self.slice.text(call.name),
                    "sendto" | "sendmsg" | "sendmmsg" | "connect"
                ) || call
                    .fd_class
                    .is_some_and(|class| self.slice.text(class).starts_with("inet"))
            })
    }

    /// Time in which the thread was runnable: other threads ran, or its cgroup was throttled.
    fn runnable(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        if is_throttled(self.slice, segment) {
            let target = BlameTarget::Thread(task.utid);
            let reason = Reason::new("cpu_throttled", target, Grade::A);
            self.interval(task, (begin, end), reason);
            return;
        }
        let Some(cpu) = segment.cpu else {
            let reason = Reason::new("cpu_runqueue", BlameTarget::Unknown, Grade::C);
            self.interval(task, (begin, end), reason);
            return;
        };
        let mut at = begin;
        let mut pieces: Vec<((Ns, Ns), Reason)> = Vec::new();
        let object = Some(Object::Cpu(cpu));
        let idle = Reason::new("cpu_idle_delay", BlameTarget::Unknown, Grade::B).about(object);
        for other in self.slice.ran_on(cpu, (begin, end)) {
            let (from, to) = (other.begin.max(at), other.end.min(end));
            if to <= from || other.utid == task.utid {
                continue;
            }
            if from > at {
                pieces.push(((at, from), idle));
            }
            let reason = Reason::new("cpu_runqueue", BlameTarget::Thread(other.utid), Grade::A);
            pieces.push(((from, to), reason.about(object)));
            at = to;
        }
        if end > at {
            pieces.push(((at, end), idle));
        }
        for (range, reason) in pieces {
            self.interval(task, range, reason);
        }
    }

    fn sleeping(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        if let Some(reason) = self.sent_late(task, segment) {
            self.interval(task, (begin, end), reason);
            return;
        }
        if task.hop.is_some() && segment.begin <= task.begin && self.is_idle_wait(segment) {
            // It had not started on the work when the wait for it started.
            self.not_begun(task, (begin, end));
            return;
        }
        match classify(self.slice, self.attribution, segment) {
            Sleep::Is(reason) => self.interval(task, (begin, end), reason),
            Sleep::Request { id, mechanism } => {
                let Some(request) = self.slice.request(id) else {
                    self.hole(task, (begin, end));
                    return;
                };
                let pieces = blocks::split(
                    self.slice,
                    self.attribution,
                    request,
                    task.utid,
                    (segment.begin, segment.end),
                );
                for (from, to, mut reason) in pieces {
                    if let Some(mechanism) = mechanism {
                        reason.mechanism = mechanism;
                    }
                    let (from, to) = (from.max(begin), to.min(end));
                    if to > from {
                        self.interval(task, (from, to), reason);
                    }
                }
            }
            Sleep::For { reason, pieces } => {
                let mut at = begin;
                for piece in pieces {
                    let (from, to) = (piece.begin.max(at), piece.end.min(end));
                    if to <= from {
                        continue;
                    }
                    if from > at {
                        self.hole(task, (at, from));
                    }
                    let grade = piece.grade.min(reason.grade);
                    let reason = Reason {
                        target: BlameTarget::Thread(piece.utid),
                        grade,
                        ..reason
                    };
                    self.hop(task, (from, to), piece.utid, reason);
                    at = to;
                }
                if end > at {
                    self.hole(task, (at, end));
                }
            }
        }
    }

    /// Whether the packet of this machine that woke the thread was late: it was retransmitted after
    /// a loss; or the kernel sent it, having delayed what a thread had sent before it waited for
    /// the reply on the same connection.
    fn sent_late(&self, task: &Task, segment: &Segment) -> Option<Reason> {
        let slice = self.slice;
        let Cause::Packet(came) = segment.cause else {
            return None;
        };
        let came = slice.packet(came)?;
        // The other end, as seen from the explained thread: either that thread received the packet,
        // or the thread that it waits for did.
        let peer = match task.hop {
            None => came.source?,
            Some(_) => came.destination?,
        };
        let is_resent = slice.resent.iter().any(|packet| {
            (packet.source, packet.destination) == (came.source, came.destination)
                && packet.ts >= segment.begin.max(segment.end - ARRIVES_NS)
                && packet.ts < segment.end
        });
        let object = Some(Object::Peer(peer));
        if is_resent {
            let reason = Reason::new("network_retransmit", BlameTarget::Peer(peer), Grade::A);
            return Some(reason.about(object));
        }
        if came.utid.is_some() {
            return None;
        }
        let step = &self.walk.steps[task.hop? as usize];
        let waits = slice.states(step.waiter, (step.begin, step.end)).last()?;
        let Cause::Packet(answer) = waits.cause else {
            return None;
        };
        let answer = slice.packet(answer)?;
        let is_of_both = (came.source, came.destination) == (answer.destination, answer.source);
        let reason = Reason::new("send_delayed", BlameTarget::Thread(step.waiter), Grade::B);
        is_of_both.then_some(reason.about(object))
    }

    /// Continues with the thread that was waited for.
    fn hop(&mut self, task: &Task, (begin, end): (Ns, Ns), next: Utid, reason: Reason) {
        let depth = task
            .hop
            .map_or(0, |hop| self.walk.steps[hop as usize].depth + 1);
        let is_cycle = next == task.utid || next == self.root || self.is_on_path(task.hop, next);
        let is_kernel_idle = !self.slice.has_rows_of(next);
        if depth >= DEPTH_MAX || is_cycle || is_kernel_idle {
            let mut reason = reason;
            if is_cycle {
                reason.grade = Grade::C;
            }
            self.interval(task, (begin, end), reason);
            return;
        }
        let step = Step {
            from: task.hop,
            waiter: task.utid,
            begin,
            end,
            reason,
            depth,
        };
        let place = self.walk.steps.len() as u32;
        self.walk.steps.push(step);
        self.tasks.push(Task {
            utid: next,
            begin,
            end,
            hop: Some(place),
            grade: task.grade.min(reason.grade),
        });
    }

    fn is_on_path(&self, mut hop: Option<u32>, utid: Utid) -> bool {
        while let Some(step) = hop.map(|hop| &self.walk.steps[hop as usize]) {
            if step.waiter == utid {
                return true;
            }
            hop = step.from;
        }
        false
    }

    fn not_begun(&mut self, task: &Task, range: (Ns, Ns)) {
        let reason = Reason::new("producer_idle", BlameTarget::Thread(task.utid), Grade::B);
        self.interval(task, range, reason);
    }

    /// Whether a thread waits for work, rather than in the middle of it.
    fn is_idle_wait(&self, segment: &Segment) -> bool {
        let slice = self.slice;
        let Some(call) = slice.call_at(segment.utid, segment.begin) else {
            return false;
        };
        // In the middle of a DNS lookup, which holds up its work.
        if name_server(slice, call).is_some() {
            return false;
        }
        // Work may have arrived that it cannot start.
        let is_frozen = || Wait::of(slice, segment, Some(call)).kind == WaitKind::Frozen;
        if segment.state == State::Stopped || is_frozen() {
            return false;
        }
        matches!(
            slice.text(call.name),
            "epoll_wait"
                | "epoll_pwait"
                | "epoll_pwait2"
                | "poll"
                | "ppoll"
                | "select"
                | "pselect6"
                | "accept"
                | "accept4"
                | "recvfrom"
                | "recvmsg"
                | "wait4"
                | "waitid"
                | "rt_sigtimedwait"
                | "io_getevents"
                | "read"
        ) && call.begin <= segment.begin
            && (slice.text(call.name) != "read"
                || call.fd_class.is_some_and(|class| {
                    matches!(
                        slice.text(class),
                        "pipe"
                            | "unix"
                            | "eventfd"
                            | "inet"
                            | "inet6"
                            | "socket"
                            | "tty"
                            | "inotify"
                            | "timerfd"
                            | "signalfd"
                    )
                }))
    }
}
