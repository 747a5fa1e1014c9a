//! From a window of one thread to the causes of each interval of it.
//!
//! A sleeping thread is followed to the thread that ended its sleep, for that time only. So windows
//! only shrink, the walk terminates, and every instant of the window belongs to one interval.

mod event_loops;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, BlamedInterval, Object, Proof, Reason, Step};
use crate::blocks;
use crate::classify::{Sleep, is_throttled};
use crate::connecting;
use crate::late;
use crate::lost;
use crate::middlemen::{self, is_idle_wait};
use crate::report::Grade;
use crate::window_slice::{Handler, Segment, State, Utid, WindowSlice};

/// Maximum number of hops in a chain.
const DEPTH_MAX: u16 = 24;
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
    /// When the thread got the work that is waited for.
    since: Ns,
    /// The request that it serves for that, if it is known.
    request: Option<i64>,
}

/// The thread that is waited for: see [`Task`].
#[derive(Clone, Copy)]
struct Next {
    utid: Utid,
    since: Ns,
    request: Option<i64>,
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
            since: Ns::MIN,
            request: None,
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
            let reason = if self.is_reclaiming(task.utid, at) {
                let (target, grade) = self.attribution.memory_user(task.utid);
                Reason::new("reclaim", target, grade)
            } else {
                Reason::new("cpu_running", BlameTarget::Thread(task.utid), Grade::A)
            };
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
            match segment.cpu {
                Some(cpu) if reason.mechanism == "cpu_running" => {
                    self.own_time(task, cpu, range, reason);
                }
                _ => self.interval(task, range, reason),
            }
        }
    }

    /// Time on a CPU, except for that in which the CPU stood still.
    fn own_time(&mut self, task: &Task, cpu: i32, (begin, end): (Ns, Ns), reason: Reason) {
        let mut at = begin;
        for (from, to) in self
            .attribution
            .stalls
            .within(self.slice, cpu, (begin, end))
        {
            if from > at {
                self.interval(task, (at, from), reason);
            }
            let stalled = Reason::new("cpu_stalled", BlameTarget::Cpu(cpu), Grade::B);
            self.interval(task, (from, to), stalled.about(Some(Object::Cpu(cpu))));
            at = to;
        }
        if end > at {
            self.interval(task, (at, end), reason);
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
        let step = task.hop.map(|hop| &self.walk.steps[hop as usize]);
        let late = late::sent_late(self.slice, step, segment);
        let late = late.or_else(|| connecting::not_accepted(self.slice, step, segment));
        if let Some(reason) = late {
            self.interval(task, (begin, end), reason);
            return;
        }
        let is_before = task.hop.is_some() && segment.begin <= task.since;
        if is_before && is_idle_wait(self.slice, segment) && !self.is_occupied(task, segment) {
            // It had not started on the work when that was passed to it.
            match self.late_message(task, segment, (begin, end)) {
                Some((next, reason)) => self.hop(task, (begin, end), next, reason),
                None => self.not_begun(task, (begin, end)),
            }
            return;
        }
        let mut at = begin;
        for piece in self.nested(task, segment, (begin, end)) {
            if piece.begin > at {
                self.slept(task, segment, (at, piece.begin));
            }
            self.served(task, segment, &piece);
            at = piece.end;
        }
        if end > at {
            self.slept(task, segment, (at, end));
        }
    }

    fn slept(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        match self.classified(task, segment) {
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
                // What it waited for already was not for that work.
                let is_before = task.hop.is_some() && segment.begin <= task.since;
                let not_before = if is_before { Ns::MIN } else { task.since };
                let since = middlemen::since(self.slice, segment, &reason, not_before);
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
                    let next = Next {
                        utid: piece.utid,
                        since: since.map_or(from, |since| since.min(from)),
                        request: self.request_of(task, segment, piece.utid),
                    };
                    self.hop(task, (from, to), next, reason);
                    at = to;
                }
                if end > at {
                    self.hole(task, (at, end));
                }
            }
        }
    }

    /// Continues with the thread that was waited for, except for the time in which the message
    /// was lost between both.
    fn hop(&mut self, task: &Task, (begin, end): (Ns, Ns), to: Next, reason: Reason) {
        let between = (task.utid, to.utid);
        let Some(((from, until), lost)) = lost::on_the_way(self.slice, between, (begin, end))
        else {
            self.hop_to(task, (begin, end), to, reason);
            return;
        };
        if from > begin {
            self.hop_to(task, (begin, from), to, reason);
        }
        self.interval(task, (from, until), lost);
        if end > until {
            self.hop_to(task, (until, end), to, reason);
        }
    }

    fn hop_to(&mut self, task: &Task, (begin, end): (Ns, Ns), to: Next, reason: Reason) {
        let next = to.utid;
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
            since: to.since,
            request: to.request,
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
}
