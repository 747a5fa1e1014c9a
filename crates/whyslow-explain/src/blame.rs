//! Which actors the intervals of a walk are attributed to, and through which chain.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, BlamedInterval, Object, Proof, Reason};
use crate::occupied::{self, Client};
use crate::report::{Activity, Actor, ActorKind, Grade, Hop, Part, Thing};
use crate::spawners::Spawners;
use crate::walk::Walk;
use crate::window_slice::{Call, Utid, WindowSlice};

/// What the last hop of a chain did if the thread before it was not blocked by it directly.
pub(crate) const CAUSED: &str = "caused the wait";
/// Maximum number of ids that a part cites as evidence.
const EVIDENCE_MAX: usize = 5;

/// A program and the process (its recording-unique id) that starts it.
pub(crate) type Program = (i32, String);

/// Sum of the intervals of one culprit, mechanism and object.
#[derive(Debug, Clone)]
pub(crate) struct Blamed {
    pub(crate) part: Part,
    /// Times by grade: C, B, A.
    pub(crate) by_grade: [Ns; 3],
    /// Index of its longest interval.
    pub(crate) longest: usize,
    /// What its culprit is one run of.
    pub(crate) program: Option<Program>,
    /// Its culprit is the recorder or tracer.
    pub(crate) is_tracer: bool,
    /// Indexes of its intervals that are waits for another host.
    pub(crate) remote: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    mechanism: &'static str,
    root: &'static str,
    actor: (ActorKind, String, Option<i32>),
    object: Option<Thing>,
    call: Option<String>,
    client: Option<(String, Option<i32>)>,
}

pub(crate) struct Blame<'m> {
    pub(crate) slice: &'m WindowSlice,
    pub(crate) attribution: &'m Attribution<'m>,
    pub(crate) root: Utid,
    spawners: Spawners,
}

impl<'m> Blame<'m> {
    /// For a walk of the thread `root`.
    pub(crate) fn new(
        slice: &'m WindowSlice,
        attribution: &'m Attribution<'m>,
        root: Utid,
        walk: &Walk,
    ) -> Self {
        Self {
            slice,
            attribution,
            root,
            spawners: Spawners::of(&slice.thread_table, root, &walk.intervals),
        }
    }
    /// Parts of a walk, the longest first. Their durations add up to the window.
    pub(crate) fn parts(&self, walk: &Walk) -> Vec<Blamed> {
        let window: Ns = walk
            .intervals
            .iter()
            .map(|interval| interval.end - interval.begin)
            .sum();
        let mut found: BTreeMap<Key, Blamed> = BTreeMap::new();
        for (place, interval) in walk.intervals.iter().enumerate() {
            self.add(&mut found, walk, place, interval);
        }
        let mut parts: Vec<Blamed> = found.into_values().collect();
        for blamed in &mut parts {
            let part = &mut blamed.part;
            part.share = part.dur_ns as f64 / window.max(1) as f64;
            part.grade = grade_of(&blamed.by_grade);
        }
        // Equal parts stay in the order of their keys.
        parts.index_sort_by_key(|blamed| std::cmp::Reverse(blamed.part.dur_ns));
        parts
    }

    fn add(
        &self,
        found: &mut BTreeMap<Key, Blamed>,
        walk: &Walk,
        place: usize,
        interval: &BlamedInterval,
    ) {
        let (target, grade) = self.resolved(interval);
        let activity = self.activity(target, interval);
        let call = activity.map(|call| self.slice.text(call.name).to_owned());
        let actor = self.actor(target);
        let mechanism = self.mechanism(walk, interval, activity, &actor);
        let children = self
            .spawner(interval)
            .map(|(_, count)| Object::Children(count));
        let object = children.or(interval.reason.object);
        let object = object.map(|object| self.thing(object));
        let client = self.client(walk, interval, target);
        let key = Key {
            mechanism,
            root: interval.reason.mechanism,
            actor: (actor.kind, actor.name.clone(), actor.pid),
            object: object.clone(),
            call,
            client: client
                .as_ref()
                .map(|client| (client.name.clone(), client.pid)),
        };
        let length = interval.end - interval.begin;
        let blamed = found.entry(key).or_insert_with(|| Blamed {
            part: Part {
                mechanism: mechanism.into(),
                root: interval.reason.mechanism.into(),
                culprit: actor,
                activity: activity.map(|call| self.activity_of(call)),
                object,
                client,
                dur_ns: 0,
                share: 0.0,
                grade,
                pieces: 0,
                evidence: Vec::new(),
                shown_by: None,
            },
            by_grade: [0; 3],
            longest: place,
            program: self.program(target),
            is_tracer: self.is_tracer(target),
            remote: Vec::new(),
        });
        blamed.part.dur_ns += length;
        blamed.part.pieces += 1;
        blamed.by_grade[grade as usize] += length;
        if is_elsewhere(&interval.reason) {
            blamed.remote.push(place as u32);
        }
        let longest = &walk.intervals[blamed.longest];
        if length > longest.end - longest.begin {
            blamed.longest = place;
            blamed.part.activity = activity.map(|call| self.activity_of(call));
        }
        if let Some(proof) = interval.reason.proof {
            let proof = evidence_id(proof);
            let evidence = &mut blamed.part.evidence;
            if evidence.len() < EVIDENCE_MAX && !evidence.contains(&proof) {
                evidence.push(proof);
            }
        }
    }

    /// The client of the request that a server worked on meanwhile, if it is not the slow thread's
    /// process.
    fn client(&self, walk: &Walk, interval: &BlamedInterval, target: BlameTarget) -> Option<Actor> {
        interval.hop?;
        let server = self.at_end(walk, interval);
        if target != BlameTarget::Thread(server) {
            return None;
        }
        let range = (interval.begin, interval.end);
        match occupied::client_of(self.slice, (server, self.root), range)? {
            Client::Process(main) => Some(self.actor_of(main)),
            Client::Address(address) => Some(Actor {
                kind: ActorKind::Peer,
                name: address.to_owned(),
                pid: None,
                tid: None,
                host: None,
            }),
        }
    }

    /// Another program than the slow thread's that a process runs again and again.
    fn program(&self, target: BlameTarget) -> Option<Program> {
        let BlameTarget::Thread(utid) = target else {
            return None;
        };
        let table = &self.slice.thread_table;
        let parent = table.launcher(utid)?;
        let is_own = table.same_process(utid, self.root);
        (!is_own).then(|| (parent, table.process_comm(utid).to_owned()))
    }

    fn is_tracer(&self, target: BlameTarget) -> bool {
        let thread_info = match target {
            BlameTarget::Thread(utid) => self.slice.thread_table.get(utid),
            _ => None,
        };
        thread_info.is_some_and(|thread_info| thread_info.is_tracer)
    }

    /// The target of a interval; for a kernel thread, the thread that its work is attributed to.
    fn resolved(&self, interval: &BlamedInterval) -> (BlameTarget, Grade) {
        match interval.reason.target {
            BlameTarget::Thread(utid)
                if self.slice.thread_table.is_kernel(utid) && utid != self.root =>
            {
                let request = match interval.reason.proof {
                    Some(Proof::Request(id)) => self.slice.request(id),
                    _ => None,
                };
                let dev = request.map(|request| request.dev);
                let (target, grade) = self.attribution.of_kernel(utid, interval.begin, dev);
                let grade = if target == interval.reason.target {
                    interval.reason.grade
                } else {
                    grade
                };
                (target, grade.min(interval.reason.grade))
            }
            BlameTarget::Thread(_) => match self.spawner(interval) {
                Some((spawner, _)) => (
                    BlameTarget::Thread(spawner),
                    interval.reason.grade.min(Grade::B),
                ),
                None => (interval.reason.target, interval.reason.grade),
            },
            target => (target, interval.reason.grade),
        }
    }

    /// The thread that many short-lived processes of a walk belong to, one of which had the CPU, and
    /// their number.
    fn spawner(&self, interval: &BlamedInterval) -> Option<(Utid, u32)> {
        match interval.reason.target {
            BlameTarget::Thread(utid) if interval.reason.mechanism == "cpu_runqueue" => {
                self.spawners.of_child(&self.slice.thread_table, utid)
            }
            _ => None,
        }
    }

    /// What a culprit was doing: the system call that submitted its request, or else the longest
    /// call at that time. That of a parent shows nothing of what its children did.
    fn activity(&self, target: BlameTarget, interval: &BlamedInterval) -> Option<&Call> {
        let BlameTarget::Thread(utid) = target else {
            return None;
        };
        if self.spawner(interval).is_some() {
            return None;
        }
        if let Some(Proof::Request(id)) = interval.reason.proof
            && let Some(request) = self.slice.request(id)
            && let Some(call) = self.slice.call_at(utid, request.begin)
        {
            return Some(call);
        }
        let calls = self.slice.calls(utid, (interval.begin, interval.end));
        calls.iter().max_by_key(|call| {
            let overlap = call.end.min(interval.end) - call.begin.max(interval.begin);
            (overlap, std::cmp::Reverse(call.id))
        })
    }

    /// The mechanism that the slow thread was subject to: that of its own wait if the culprit is
    /// another thread.
    fn mechanism(
        &self,
        walk: &Walk,
        interval: &BlamedInterval,
        activity: Option<&Call>,
        actor: &Actor,
    ) -> &'static str {
        let mut hop = interval.hop;
        let mut first = &interval.reason;
        while let Some(place) = hop {
            let step = &walk.steps[place as usize];
            first = &step.reason;
            hop = step.from;
        }
        let waited_for = if self.is_paused(first) {
            "runtime_pause"
        } else {
            first.mechanism
        };
        let syncs =
            activity.is_some_and(|call| matches!(self.slice.text(call.name), "sync" | "syncfs"));
        let by_disk = |mechanism: &str| {
            matches!(
                mechanism,
                "block_queue" | "block_service" | "journal_wait" | "writeback_wait"
            )
        };
        if syncs && actor.kind == ActorKind::Process && by_disk(interval.reason.mechanism) {
            return "sync_storm";
        }
        match (waited_for, interval.reason.mechanism) {
            // Throttling and losses are the cause whichever thread of the chain had to wait.
            (_, root @ ("cpu_throttled" | "cpu_stalled" | "lost")) => root,
            (waited_for, _) => waited_for,
        }
    }

    /// Whether the thread that was waited for is the one of HotSpot that stops all others: the futex
    /// at which they wait is no lock.
    fn is_paused(&self, first: &Reason) -> bool {
        let BlameTarget::Thread(utid) = first.target else {
            return false;
        };
        let thread_table = &self.slice.thread_table;
        first.mechanism == "lock_futex"
            && thread_table.comm(utid) == "VM Thread"
            && thread_table.same_process(utid, self.root)
    }

    pub(crate) fn actor(&self, target: BlameTarget) -> Actor {
        let named = |kind, name: &str| Actor {
            kind,
            name: name.to_owned(),
            pid: None,
            tid: None,
            host: None,
        };
        match target {
            BlameTarget::Thread(utid) => self.actor_of(utid),
            BlameTarget::Device(id) => named(ActorKind::Device, self.slice.text(id)),
            BlameTarget::Peer(id) => named(ActorKind::Peer, self.slice.text(id)),
            BlameTarget::Interrupt(id) => named(ActorKind::Interrupt, self.slice.text(id)),
            BlameTarget::Cpu(cpu) => named(ActorKind::Cpu, &format!("CPU {cpu}")),
            BlameTarget::Timer => named(ActorKind::Timer, "timer"),
            BlameTarget::Unknown => named(ActorKind::Unknown, "unknown"),
        }
    }

    pub(crate) fn actor_of(&self, utid: Utid) -> Actor {
        let thread_table = &self.slice.thread_table;
        let thread_info = thread_table.get(utid);
        let kind = if utid == self.root {
            ActorKind::Own
        } else if thread_table.is_kernel(utid) {
            ActorKind::Kernel
        } else {
            ActorKind::Process
        };
        // The ids lead to the process. A thread without a name has that of its process.
        let name = match thread_table.name(utid) {
            "" => thread_table.process_comm(utid),
            name => name,
        };
        Actor {
            kind,
            name: name.to_owned(),
            pid: thread_info.and_then(|thread_info| thread_info.pid),
            tid: thread_info.map(|thread_info| thread_info.tid),
            host: None,
        }
    }

    pub(crate) fn thing(&self, object: Object) -> Thing {
        let (kind, name) = match object {
            Object::Device(id) => ("device", self.slice.text(id).to_owned()),
            Object::File(id) => ("file", self.slice.text(id).to_owned()),
            Object::Lock(id) => ("lock", self.slice.text(id).to_owned()),
            Object::Futex(id) => ("futex", self.slice.text(id).to_owned()),
            Object::Peer(id) => ("peer", self.slice.text(id).to_owned()),
            Object::Function(id) => ("function", self.slice.text(id).to_owned()),
            Object::Cpu(cpu) => ("cpu", cpu.to_string()),
            Object::Children(count) => ("children", format!("{count} short-lived processes")),
        };
        Thing {
            kind: kind.into(),
            name,
        }
    }

    pub(crate) fn activity_of(&self, call: &Call) -> Activity {
        Activity {
            call: self.slice.text(call.name).to_owned(),
            path: call.path.map(|path| self.slice.text(path).to_owned()),
            begin_ns: call.begin,
            end_ns: (!call.is_open).then_some(call.end),
            id: Some(format!("op:{}", call.id)),
        }
    }

    /// Whether an interval is attributed to what this call did, or was a wait for its thread.
    pub(crate) fn is_due_to(&self, walk: &Walk, interval: &BlamedInterval, call: &Call) -> bool {
        let (target, _) = self.resolved(interval);
        let activity = self.activity(target, interval);
        if activity.is_some_and(|activity| activity.id == call.id) {
            return true;
        }
        let mut hop = interval.hop;
        while let Some(place) = hop {
            let step = &walk.steps[place as usize];
            if step.reason.target == BlameTarget::Thread(call.utid) {
                return true;
            }
            hop = step.from;
        }
        false
    }

    /// From the thread to the culprit, along the longest interval of a part.
    pub(crate) fn chain(&self, walk: &Walk, blamed: &Blamed) -> Vec<Hop> {
        let interval = &walk.intervals[blamed.longest];
        let mut chain = Vec::new();
        let mut hop = interval.hop;
        while let Some(place) = hop {
            let step = &walk.steps[place as usize];
            chain.push(self.hop(step.waiter, (step.begin, step.end), &step.reason, "waited"));
            hop = step.from;
        }
        chain.reverse();
        let at_end = self.at_end(walk, interval);
        let did = match interval.reason.mechanism {
            "cpu_running" => "ran",
            "cpu_runqueue" | "cpu_idle_delay" | "cpu_throttled" => "was runnable",
            _ => "waited",
        };
        chain.push(self.hop(
            at_end,
            (interval.begin, interval.end),
            &interval.reason,
            did,
        ));
        let (target, grade) = self.resolved(interval);
        if let BlameTarget::Thread(utid) = target
            && utid != at_end
        {
            let reason = Reason {
                target,
                grade,
                ..interval.reason
            };
            let mut last = self.hop(utid, (interval.begin, interval.end), &reason, CAUSED);
            last.activity = self
                .activity(target, interval)
                .map(|call| self.activity_of(call));
            // It acted earlier, so its current stack shows nothing.
            last.stack.clear();
            chain.push(last);
        }
        chain
    }

    /// The thread of a interval, at the end of its hops.
    pub(crate) fn at_end(&self, walk: &Walk, interval: &BlamedInterval) -> Utid {
        let last = interval
            .hop
            .map(|hop| walk.steps[hop as usize].reason.target);
        match last {
            Some(BlameTarget::Thread(utid)) => utid,
            _ => self.root,
        }
    }

    fn hop(&self, utid: Utid, (begin, end): (Ns, Ns), reason: &Reason, what: &str) -> Hop {
        let slice = self.slice;
        let stack = slice.stack_at(utid, (begin, end));
        let functions = stack
            .map(|stack| slice.functions(stack.callsite))
            .unwrap_or_default();
        let names = functions.iter().map(|id| slice.text(*id).to_owned());
        let call = slice.call_at(utid, begin);
        Hop {
            actor: self.actor_of(utid),
            what: what.into(),
            mechanism: reason.mechanism.into(),
            activity: call.map(|call| self.activity_of(call)),
            object: reason.object.map(|object| self.thing(object)),
            stack: names.take(12).collect(),
            program: Vec::new(),
            begin_ns: begin,
            end_ns: end,
            grade: reason.grade,
            evidence: reason.proof.map(evidence_id).unwrap_or_default(),
            shown_by: None,
        }
    }
}

/// The best grade that at least half of the time has.
fn grade_of(by_grade: &[Ns; 3]) -> Grade {
    let total: Ns = by_grade.iter().sum();
    if by_grade[2] * 2 >= total {
        Grade::A
    } else if (by_grade[2] + by_grade[1]) * 2 >= total {
        Grade::B
    } else {
        Grade::C
    }
}

pub(crate) fn evidence_id(proof: Proof) -> String {
    match proof {
        Proof::Call(id) => format!("op:{id}"),
        Proof::Request(id) => format!("block:{id}"),
        Proof::LockWait(id) => format!("lock:{id}"),
        Proof::Work(id) => format!("fs:{id}"),
        Proof::Stack(id) => format!("stack:{id}"),
    }
}

/// Sums of parts by culprit of a thread in process `victim`: another process may be responsible
/// through several mechanisms and threads, and a program through several runs of it that one process
/// starts; its first part is the longest. CPU time of the thread itself and its other own waits are separate, because neither causes the other.
pub(crate) fn by_culprit(
    parts: &[Blamed],
    victim: Option<i32>,
    without: &dyn Fn(&Blamed) -> bool,
) -> Vec<(usize, [Ns; 3])> {
    let mut order: Vec<(usize, [Ns; 3])> = Vec::new();
    let mut places = FxHashMap::default();
    let parts = parts.iter().enumerate();
    for (place, blamed) in parts.filter(|(_, blamed)| !without(blamed)) {
        let actor = &blamed.part.culprit;
        let is_work = actor.kind == ActorKind::Own && blamed.part.root == "cpu_running";
        let of_process = actor.culprit_key(victim);
        let of_program = blamed.program.as_ref();
        let key = (
            of_program.is_none().then_some(of_process),
            of_program,
            is_work,
        );
        let at = *places.entry(key).or_insert_with(|| {
            order.push((place, [0; 3]));
            order.len() - 1
        });
        for (sum, more) in order[at].1.iter_mut().zip(blamed.by_grade) {
            *sum += more;
        }
    }
    order.index_sort_by_key(|(place, sums)| (std::cmp::Reverse(sums.iter().sum::<Ns>()), *place));
    order
}

/// Whether what the wait was for may be in another recording: of another host, or of a process of
/// this host that is not in this one.
fn is_elsewhere(reason: &Reason) -> bool {
    let is_unidentified = reason.target == BlameTarget::Unknown;
    reason.mechanism == "network_remote" || (reason.mechanism == "local_ipc" && is_unidentified)
}
