//! Which actors the leaves of a walk are attributed to, and through which chain.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::behalf::Behalf;
use crate::leaf::{Leaf, Object, Proof, Who};
use crate::moment::{Call, Moment, Utid};
use crate::report::{Activity, Actor, ActorKind, Grade, Hop, Part, Thing};
use crate::walk::Walk;

/// What the last hop of a chain did if the thread before it was not blocked by it directly.
pub(crate) const CAUSED: &str = "caused it";
/// Maximum number of ids that a part cites as evidence.
const EVIDENCE_MAX: usize = 5;

/// Sum of the leaves of one culprit, mechanism and object.
#[derive(Debug, Clone)]
pub(crate) struct Blamed {
    pub(crate) part: Part,
    /// Times by grade: C, B, A.
    pub(crate) by_grade: [Ns; 3],
    /// Index of its longest leaf.
    pub(crate) longest: usize,
    /// Its culprit is the recorder or tracer.
    pub(crate) is_tracer: bool,
    /// Indexes of its leaves that are waits for another host.
    pub(crate) remote: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    mechanism: &'static str,
    root: &'static str,
    actor: (ActorKind, String, Option<i32>),
    object: Option<Thing>,
    call: Option<String>,
}

pub(crate) struct Blame<'m> {
    pub(crate) moment: &'m Moment,
    pub(crate) behalf: &'m Behalf<'m>,
    pub(crate) root: Utid,
}

impl Blame<'_> {
    /// Parts of a walk, the longest first. Their durations add up to the window.
    pub(crate) fn parts(&self, walk: &Walk) -> Vec<Blamed> {
        let window: Ns = walk.leaves.iter().map(|leaf| leaf.end - leaf.begin).sum();
        let mut found: BTreeMap<Key, Blamed> = BTreeMap::new();
        for (place, leaf) in walk.leaves.iter().enumerate() {
            self.add(&mut found, walk, place, leaf);
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

    fn add(&self, found: &mut BTreeMap<Key, Blamed>, walk: &Walk, place: usize, leaf: &Leaf) {
        let (who, grade) = self.resolved(leaf);
        let activity = self.activity(who, leaf);
        let call = activity.map(|call| self.moment.word(call.name).to_owned());
        let actor = self.actor(who);
        let mechanism = self.mechanism(walk, leaf, activity, &actor);
        let object = leaf.why.object.map(|object| self.thing(object));
        let key = Key {
            mechanism,
            root: leaf.why.mechanism,
            actor: (actor.kind, actor.name.clone(), actor.pid),
            object: object.clone(),
            call,
        };
        let length = leaf.end - leaf.begin;
        let blamed = found.entry(key).or_insert_with(|| Blamed {
            part: Part {
                mechanism: mechanism.into(),
                root: leaf.why.mechanism.into(),
                culprit: actor,
                activity: activity.map(|call| self.told(call)),
                object,
                dur_ns: 0,
                share: 0.0,
                grade,
                pieces: 0,
                evidence: Vec::new(),
                shown_by: None,
            },
            by_grade: [0; 3],
            longest: place,
            is_tracer: self.is_tracer(who),
            remote: Vec::new(),
        });
        blamed.part.dur_ns += length;
        blamed.part.pieces += 1;
        blamed.by_grade[grade as usize] += length;
        if leaf.why.mechanism == "network_remote" {
            blamed.remote.push(place as u32);
        }
        let longest = &walk.leaves[blamed.longest];
        if length > longest.end - longest.begin {
            blamed.longest = place;
            blamed.part.activity = activity.map(|call| self.told(call));
        }
        if let Some(proof) = leaf.why.proof {
            let proof = told_proof(proof);
            let evidence = &mut blamed.part.evidence;
            if evidence.len() < EVIDENCE_MAX && !evidence.contains(&proof) {
                evidence.push(proof);
            }
        }
    }

    fn is_tracer(&self, who: Who) -> bool {
        let person = match who {
            Who::Thread(utid) => self.moment.people.get(utid),
            _ => None,
        };
        person.is_some_and(|person| person.is_tracer)
    }

    /// The target of a leaf; for a kernel thread, the thread that its work is attributed to.
    fn resolved(&self, leaf: &Leaf) -> (Who, Grade) {
        match leaf.why.who {
            Who::Thread(utid) if self.moment.people.is_kernel(utid) && utid != self.root => {
                let request = match leaf.why.proof {
                    Some(Proof::Request(id)) => self.moment.request(id),
                    _ => None,
                };
                let dev = request.map(|request| request.dev);
                let (who, grade) = self.behalf.of_kernel(utid, leaf.begin, dev);
                let grade = if who == leaf.why.who {
                    leaf.why.grade
                } else {
                    grade
                };
                (who, grade.min(leaf.why.grade))
            }
            // A thread that starts a thousand processes a second occupies the CPU with each of them.
            Who::Thread(utid) if leaf.why.mechanism == "cpu_runqueue" => {
                match self.moment.people.spawner(utid) {
                    Some(spawner) if !self.moment.people.same_process(spawner, self.root) => {
                        (Who::Thread(spawner), leaf.why.grade.min(Grade::B))
                    }
                    _ => (leaf.why.who, leaf.why.grade),
                }
            }
            who => (who, leaf.why.grade),
        }
    }

    /// What a culprit was doing: the system call that submitted its request, or else the longest call
    /// at that time.
    fn activity(&self, who: Who, leaf: &Leaf) -> Option<&Call> {
        let Who::Thread(utid) = who else { return None };
        if let Some(Proof::Request(id)) = leaf.why.proof
            && let Some(request) = self.moment.request(id)
            && let Some(call) = self.moment.call_at(utid, request.begin)
        {
            return Some(call);
        }
        let calls = self.moment.calls(utid, (leaf.begin, leaf.end));
        calls.iter().max_by_key(|call| {
            let overlap = call.end.min(leaf.end) - call.begin.max(leaf.begin);
            (overlap, std::cmp::Reverse(call.id))
        })
    }

    /// The mechanism that the slow thread was subject to: that of its own wait if the culprit is another
    /// thread.
    fn mechanism(
        &self,
        walk: &Walk,
        leaf: &Leaf,
        activity: Option<&Call>,
        actor: &Actor,
    ) -> &'static str {
        let mut hop = leaf.hop;
        let mut first = None;
        while let Some(place) = hop {
            let step = &walk.steps[place as usize];
            first = Some(step.why.mechanism);
            hop = step.from;
        }
        let felt = first.unwrap_or(leaf.why.mechanism);
        let syncs =
            activity.is_some_and(|call| matches!(self.moment.word(call.name), "sync" | "syncfs"));
        let by_disk = |mechanism: &str| {
            matches!(
                mechanism,
                "block_queue" | "block_service" | "journal_wait" | "writeback_wait"
            )
        };
        if syncs && actor.kind == ActorKind::Process && by_disk(leaf.why.mechanism) {
            return "sync_storm";
        }
        match (felt, leaf.why.mechanism) {
            // Throttling and losses are the cause whichever thread of the chain had to wait.
            (_, root @ ("cpu_throttled" | "lost")) => root,
            (felt, _) => felt,
        }
    }

    pub(crate) fn actor(&self, who: Who) -> Actor {
        let named = |kind, name: &str| Actor {
            kind,
            name: name.to_owned(),
            pid: None,
            tid: None,
            host: None,
        };
        match who {
            Who::Thread(utid) => self.actor_of(utid),
            Who::Device(word) => named(ActorKind::Device, self.moment.word(word)),
            Who::Peer(word) => named(ActorKind::Peer, self.moment.word(word)),
            Who::Interrupt(word) => named(ActorKind::Interrupt, self.moment.word(word)),
            Who::Timer => named(ActorKind::Timer, "timer"),
            Who::Unknown => named(ActorKind::Unknown, "unknown"),
        }
    }

    pub(crate) fn actor_of(&self, utid: Utid) -> Actor {
        let people = &self.moment.people;
        let person = people.get(utid);
        let is_sibling = utid != self.root && people.same_process(utid, self.root);
        let kind = if utid == self.root {
            ActorKind::Own
        } else if people.is_kernel(utid) {
            ActorKind::Kernel
        } else {
            ActorKind::Process
        };
        // Sibling threads are named by thread, other processes by their main thread.
        let name = if is_sibling || utid == self.root || kind == ActorKind::Kernel {
            people.name(utid)
        } else {
            people.process_comm(utid)
        };
        Actor {
            kind,
            name: name.to_owned(),
            pid: person.and_then(|person| person.pid),
            tid: person.map(|person| person.tid),
            host: None,
        }
    }

    pub(crate) fn thing(&self, object: Object) -> Thing {
        let (kind, name) = match object {
            Object::Device(word) => ("device", self.moment.word(word).to_owned()),
            Object::File(word) => ("file", self.moment.word(word).to_owned()),
            Object::Lock(word) => ("lock", self.moment.word(word).to_owned()),
            Object::Futex(word) => ("futex", self.moment.word(word).to_owned()),
            Object::Peer(word) => ("peer", self.moment.word(word).to_owned()),
            Object::Function(word) => ("function", self.moment.word(word).to_owned()),
            Object::Cpu(cpu) => ("cpu", cpu.to_string()),
        };
        Thing {
            kind: kind.into(),
            name,
        }
    }

    pub(crate) fn told(&self, call: &Call) -> Activity {
        Activity {
            call: self.moment.word(call.name).to_owned(),
            path: call.path.map(|path| self.moment.word(path).to_owned()),
            begin_ns: call.begin,
            end_ns: (!call.is_open).then_some(call.end),
            id: Some(format!("op:{}", call.id)),
        }
    }

    /// From the thread to the culprit, along the longest leaf of a part.
    pub(crate) fn chain(&self, walk: &Walk, blamed: &Blamed) -> Vec<Hop> {
        let leaf = &walk.leaves[blamed.longest];
        let mut chain = Vec::new();
        let mut hop = leaf.hop;
        while let Some(place) = hop {
            let step = &walk.steps[place as usize];
            chain.push(self.hop(step.waiter, (step.begin, step.end), &step.why, "waited"));
            hop = step.from;
        }
        chain.reverse();
        let at_end = self.at_end(walk, leaf);
        let did = match leaf.why.mechanism {
            "cpu_running" => "ran",
            "cpu_runqueue" | "cpu_idle_delay" | "cpu_throttled" => "could not run",
            _ => "waited",
        };
        chain.push(self.hop(at_end, (leaf.begin, leaf.end), &leaf.why, did));
        let (who, grade) = self.resolved(leaf);
        if let Who::Thread(utid) = who
            && utid != at_end
        {
            let why = crate::leaf::Why {
                who,
                grade,
                ..leaf.why
            };
            let mut last = self.hop(utid, (leaf.begin, leaf.end), &why, CAUSED);
            last.activity = self.activity(who, leaf).map(|call| self.told(call));
            // It acted earlier, so its current stack shows nothing.
            last.stack.clear();
            chain.push(last);
        }
        chain
    }

    /// The thread of a leaf, at the end of its hops.
    pub(crate) fn at_end(&self, walk: &Walk, leaf: &Leaf) -> Utid {
        let last = leaf.hop.map(|hop| walk.steps[hop as usize].why.who);
        match last {
            Some(Who::Thread(utid)) => utid,
            _ => self.root,
        }
    }

    fn hop(&self, utid: Utid, (begin, end): (Ns, Ns), why: &crate::leaf::Why, what: &str) -> Hop {
        let moment = self.moment;
        let stack = moment.stack_at(utid, (begin, end));
        let functions = stack
            .map(|stack| moment.functions(stack.callsite))
            .unwrap_or_default();
        let words = functions.iter().map(|word| moment.word(*word).to_owned());
        let call = moment.call_at(utid, begin);
        Hop {
            actor: self.actor_of(utid),
            what: what.into(),
            mechanism: why.mechanism.into(),
            activity: call.map(|call| self.told(call)),
            object: why.object.map(|object| self.thing(object)),
            stack: words.take(12).collect(),
            program: Vec::new(),
            begin_ns: begin,
            end_ns: end,
            grade: why.grade,
            evidence: why.proof.map(told_proof).unwrap_or_default(),
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

pub(crate) fn told_proof(proof: Proof) -> String {
    match proof {
        Proof::Call(id) => format!("op:{id}"),
        Proof::Request(id) => format!("block:{id}"),
        Proof::LockWait(id) => format!("lock:{id}"),
        Proof::Work(id) => format!("fs:{id}"),
        Proof::Stack(id) => format!("stack:{id}"),
    }
}

/// Sums of parts by culprit: one process may be responsible through several mechanisms. CPU time of the
/// thread itself and its other own waits are separate, because neither causes the other.
pub(crate) fn by_culprit(
    parts: &[Blamed],
    without: &dyn Fn(&Blamed) -> bool,
) -> Vec<(usize, [Ns; 3])> {
    let mut order: Vec<(usize, [Ns; 3])> = Vec::new();
    let mut places: FxHashMap<(ActorKind, &str, Option<i32>, bool), usize> = FxHashMap::default();
    let parts = parts.iter().enumerate();
    for (place, blamed) in parts.filter(|(_, blamed)| !without(blamed)) {
        let actor = &blamed.part.culprit;
        let is_work = actor.kind == ActorKind::Own && blamed.part.root == "cpu_running";
        let key = (actor.kind, actor.name.as_str(), actor.pid, is_work);
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
