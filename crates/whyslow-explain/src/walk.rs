//! From a window of one thread to the causes of each interval of it.
//!
//! A sleeping thread is followed to the thread that ended its sleep, for that time only. So windows
//! only shrink, the walk terminates, and every instant of the window belongs to one leaf.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::behalf::Behalf;
use crate::blocks;
use crate::classify::{Sleep, classify, is_throttled};
use crate::leaf::{Leaf, Object, Proof, Step, Who, Why};
use crate::moment::{Cause, Handler, Moment, Segment, State, Utid};
use crate::network::name_server;
use crate::report::Grade;

/// Maximum number of hops in a chain.
const DEPTH_MAX: u16 = 24;
/// A packet retransmitted to the same machine has arrived after this time.
const ARRIVES_NS: Ns = 10_000_000;
/// Maximum number of leaves of a walk; the time beyond is left unknown.
const LEAVES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// In order of time; together they cover the window.
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) steps: Vec<Step>,
}

struct Task {
    utid: Utid,
    begin: Ns,
    end: Ns,
    hop: Option<u32>,
    grade: Grade,
}

struct Walker<'m> {
    moment: &'m Moment,
    behalf: &'m Behalf<'m>,
    /// The explained thread.
    root: Utid,
    walk: Walk,
    tasks: Vec<Task>,
}

pub(crate) fn walk(moment: &Moment, behalf: &Behalf<'_>, root: Utid, window: (Ns, Ns)) -> Walk {
    let mut walker = Walker {
        moment,
        behalf,
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
    walk.leaves
        .index_sort_by_ints(|leaf| [leaf.begin, leaf.end, 0]);
    conserve(&mut walk.leaves, window);
    walk
}

/// Every instant belongs to one leaf. Should that ever fail, overlaps are cut and gaps become unknown,
/// so that the sums stay right.
fn conserve(leaves: &mut Vec<Leaf>, (begin, end): (Ns, Ns)) {
    let mut kept: Vec<Leaf> = Vec::with_capacity(leaves.len());
    let mut at = begin;
    let unknown = |begin, end| Leaf {
        begin,
        end,
        why: Why::unknown("unknown"),
        hop: None,
    };
    for mut leaf in leaves.drain(..) {
        debug_assert!(
            leaf.begin == at,
            "leaves leave no gap and do not overlap: {leaf:?} at {at}"
        );
        if leaf.begin > at {
            kept.push(unknown(at, leaf.begin));
        }
        leaf.begin = leaf.begin.max(at);
        leaf.end = leaf.end.min(end);
        if leaf.end > leaf.begin {
            at = leaf.end;
            kept.push(leaf);
        }
    }
    debug_assert!(at == end, "leaves end where the window does");
    if end > at {
        kept.push(unknown(at, end));
    }
    *leaves = kept;
}

impl Walker<'_> {
    fn follow(&mut self, task: &Task) {
        let moment = self.moment;
        let mut at = task.begin;
        for segment in moment.states(task.utid, (task.begin, task.end)) {
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
        let mechanism = if self.moment.is_lossy(None, range) {
            "lost"
        } else {
            "unknown"
        };
        self.leaf(task, range, Why::unknown(mechanism));
    }

    fn leaf(&mut self, task: &Task, (begin, end): (Ns, Ns), mut why: Why) {
        why.grade = why.grade.min(task.grade);
        // The thread that was waited for is known, even if what it did is not.
        if task.hop.is_some()
            && matches!(
                why.who,
                Who::Unknown | Who::Timer | Who::Peer(_) | Who::Interrupt(_)
            )
            && !matches!(why.mechanism, "lost" | "network_retransmit")
        {
            why.who = Who::Thread(task.utid);
        }
        if matches!(why.who, Who::Timer) {
            why.who = Who::Thread(task.utid);
        }
        self.walk.leaves.push(Leaf {
            begin,
            end,
            why,
            hop: task.hop,
        });
    }

    fn segment(&mut self, task: &Task, segment: &Segment, range: (Ns, Ns)) {
        if self.walk.leaves.len() >= LEAVES_MAX {
            self.leaf(task, range, Why::unknown("unknown"));
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

    /// Time on a CPU without interrupts; softirqs caused by the thread's own sending are its own time.
    fn running(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        let own = |at: Ns| {
            let mechanism = if self.is_reclaiming(task.utid, at) {
                "reclaim"
            } else {
                "cpu_running"
            };
            let why = Why::new(mechanism, Who::Thread(task.utid), Grade::A);
            match self.moment.call_at(task.utid, at) {
                Some(call) => why.by(Proof::Call(call.id)),
                None => why,
            }
        };
        let mut pieces: Vec<((Ns, Ns), Why)> = Vec::new();
        let mut at = begin;
        let handlers = segment
            .cpu
            .map(|cpu| self.moment.handlers(cpu, (begin, end)));
        for handler in handlers.into_iter().flatten() {
            let (from, to) = (handler.begin.max(at), handler.end.min(end));
            if to <= from || self.is_own(task.utid, handler) {
                continue;
            }
            if from > at {
                pieces.push(((at, from), own(at)));
            }
            let name = handler.name.unwrap_or(handler.kind);
            let why = Why::new("irq_stolen", Who::Interrupt(name), Grade::A);
            pieces.push(((from, to), why));
            at = to;
        }
        if end > at {
            pieces.push(((at, end), own(at)));
        }
        for (range, why) in pieces {
            self.leaf(task, range, why);
        }
    }

    fn is_reclaiming(&self, utid: Utid, at: Ns) -> bool {
        let mut reclaims = self.moment.reclaims_of(utid).iter();
        reclaims.any(|row| row.begin <= at && at < row.end)
    }

    /// Softirqs within a sending call usually handle what the call sends.
    fn is_own(&self, utid: Utid, handler: &Handler) -> bool {
        self.moment.word(handler.kind) == "soft"
            && self
                .moment
                .call_at(utid, handler.begin)
                .is_some_and(|call| {
                    matches!(
                        self.moment.word(call.name),
                        "sendto" | "sendmsg" | "sendmmsg" | "connect"
                    ) || call
                        .fd_class
                        .is_some_and(|class| self.moment.word(class).starts_with("inet"))
                })
    }

    /// Time in which the thread was runnable: other threads ran, or its cgroup was throttled.
    fn runnable(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        if is_throttled(self.moment, segment) {
            let who = Who::Thread(task.utid);
            let why = Why::new("cpu_throttled", who, Grade::A);
            self.leaf(task, (begin, end), why);
            return;
        }
        let Some(cpu) = segment.cpu else {
            let why = Why::new("cpu_runqueue", Who::Unknown, Grade::C);
            self.leaf(task, (begin, end), why);
            return;
        };
        let mut at = begin;
        let mut pieces: Vec<((Ns, Ns), Why)> = Vec::new();
        let object = Some(Object::Cpu(cpu));
        let idle = Why::new("cpu_idle_delay", Who::Unknown, Grade::B).about(object);
        for other in self.moment.ran_on(cpu, (begin, end)) {
            let (from, to) = (other.begin.max(at), other.end.min(end));
            if to <= from || other.utid == task.utid {
                continue;
            }
            if from > at {
                pieces.push(((at, from), idle));
            }
            let why = Why::new("cpu_runqueue", Who::Thread(other.utid), Grade::A);
            pieces.push(((from, to), why.about(object)));
            at = to;
        }
        if end > at {
            pieces.push(((at, end), idle));
        }
        for (range, why) in pieces {
            self.leaf(task, range, why);
        }
    }

    fn sleeping(&mut self, task: &Task, segment: &Segment, (begin, end): (Ns, Ns)) {
        if let Some(why) = self.sent_late(task, segment) {
            self.leaf(task, (begin, end), why);
            return;
        }
        if task.hop.is_some() && segment.begin <= task.begin && self.is_idle_wait(segment) {
            // It had not started on the work when the wait for it started.
            self.not_begun(task, (begin, end));
            return;
        }
        match classify(self.moment, self.behalf, segment) {
            Sleep::Is(why) => self.leaf(task, (begin, end), why),
            Sleep::Request { id, mechanism } => {
                let Some(request) = self.moment.request(id) else {
                    self.hole(task, (begin, end));
                    return;
                };
                let pieces = blocks::split(
                    self.moment,
                    self.behalf,
                    request,
                    task.utid,
                    (segment.begin, segment.end),
                );
                for (from, to, mut why) in pieces {
                    if let Some(mechanism) = mechanism {
                        why.mechanism = mechanism;
                    }
                    let (from, to) = (from.max(begin), to.min(end));
                    if to > from {
                        self.leaf(task, (from, to), why);
                    }
                }
            }
            Sleep::For { why, pieces } => {
                let mut at = begin;
                for piece in pieces {
                    let (from, to) = (piece.begin.max(at), piece.end.min(end));
                    if to <= from {
                        continue;
                    }
                    if from > at {
                        self.hole(task, (at, from));
                    }
                    let grade = piece.grade.min(why.grade);
                    let why = Why {
                        who: Who::Thread(piece.utid),
                        grade,
                        ..why
                    };
                    self.hop(task, (from, to), piece.utid, why);
                    at = to;
                }
                if end > at {
                    self.hole(task, (at, end));
                }
            }
        }
    }

    /// Whether the packet of this machine that woke the thread was late: it was retransmitted after a
    /// loss; or the kernel sent it, having delayed what a thread had sent before it waited for the reply
    /// on the same connection.
    fn sent_late(&self, task: &Task, segment: &Segment) -> Option<Why> {
        let moment = self.moment;
        let Cause::Packet(came) = segment.cause else {
            return None;
        };
        let came = moment.packet(came)?;
        // The other end, as seen from the explained thread: either that thread received the packet, or
        // the thread that it waits for did.
        let peer = match task.hop {
            None => came.source?,
            Some(_) => came.destination?,
        };
        let is_resent = moment.resent.iter().any(|packet| {
            (packet.source, packet.destination) == (came.source, came.destination)
                && packet.ts >= segment.begin.max(segment.end - ARRIVES_NS)
                && packet.ts < segment.end
        });
        let object = Some(Object::Peer(peer));
        if is_resent {
            let why = Why::new("network_retransmit", Who::Peer(peer), Grade::A);
            return Some(why.about(object));
        }
        if came.utid.is_some() {
            return None;
        }
        let step = &self.walk.steps[task.hop? as usize];
        let waits = moment.states(step.waiter, (step.begin, step.end)).last()?;
        let Cause::Packet(answer) = waits.cause else {
            return None;
        };
        let answer = moment.packet(answer)?;
        let is_of_both = (came.source, came.destination) == (answer.destination, answer.source);
        let why = Why::new("send_delayed", Who::Thread(step.waiter), Grade::B);
        is_of_both.then_some(why.about(object))
    }

    /// Continues with the thread that was waited for.
    fn hop(&mut self, task: &Task, (begin, end): (Ns, Ns), next: Utid, why: Why) {
        let depth = task
            .hop
            .map_or(0, |hop| self.walk.steps[hop as usize].depth + 1);
        let is_cycle = next == task.utid || next == self.root || self.is_on_path(task.hop, next);
        let is_kernel_idle = !self.moment.has_rows_of(next);
        if depth >= DEPTH_MAX || is_cycle || is_kernel_idle {
            let mut why = why;
            if is_cycle {
                why.grade = Grade::C;
            }
            self.leaf(task, (begin, end), why);
            return;
        }
        let step = Step {
            from: task.hop,
            waiter: task.utid,
            begin,
            end,
            why,
            depth,
        };
        let place = self.walk.steps.len() as u32;
        self.walk.steps.push(step);
        self.tasks.push(Task {
            utid: next,
            begin,
            end,
            hop: Some(place),
            grade: task.grade.min(why.grade),
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
        let why = Why::new("producer_idle", Who::Thread(task.utid), Grade::B);
        self.leaf(task, range, why);
    }

    /// Whether a thread waits for work, rather than in the middle of it.
    fn is_idle_wait(&self, segment: &Segment) -> bool {
        let moment = self.moment;
        let Some(call) = moment.call_at(segment.utid, segment.begin) else {
            return false;
        };
        // In the middle of a DNS lookup, which holds up its work.
        if name_server(moment, call).is_some() {
            return false;
        }
        matches!(
            moment.word(call.name),
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
            && (moment.word(call.name) != "read"
                || call.fd_class.is_some_and(|class| {
                    matches!(
                        moment.word(class),
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
