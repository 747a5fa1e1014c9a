//! From a thread that waited to the one that blocked it, as far as a profile shows.

use rustc_hash::FxHashSet;
use whyslow_model::Ns;

use super::load::{Gap, Holder, Seen, Wait};
use crate::report::{Activity, Actor, Grade, Hop, Thing};
use crate::sentence;

/// Maximum number of holders that are followed.
const LINKS_MAX: usize = 16;
/// Minimum share of the first holder's time that the next link has to account for.
const LINK_SHARE: f64 = 0.5;
/// If the links before the end of the chain account for a smaller share, it is within the sampling
/// error.
const REST_MIN: f64 = 0.05;

/// A thread that a chain leads to.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) actor: Actor,
    pub(super) mechanism: &'static str,
    pub(super) function: Option<String>,
    /// Nanoseconds of the wait that it and the links after it account for.
    covered: Ns,
}

#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) hops: Vec<Hop>,
    /// The direct holder first.
    links: Vec<Link>,
    /// At least one link is little more than a guess.
    pub(super) is_guess: bool,
    pub(super) evidence: Vec<String>,
    pub(super) caveats: Vec<String>,
    /// Sampling gaps that it includes.
    pub(super) gaps: Vec<i64>,
}

/// `the monitor of a.Log`.
pub(super) fn lock_name(wait: &Wait) -> String {
    let what = match wait.kind.as_str() {
        "monitor" => "the monitor of",
        "pthread" => "the mutex in",
        _ => "the lock",
    };
    format!("{what} {}", wait.object)
}

pub(super) fn lock_thing(wait: &Wait) -> Thing {
    let name = if wait.lock == wait.object {
        wait.object.clone()
    } else {
        format!("{} <0x{}>", wait.object, wait.lock)
    };
    Thing {
        kind: "lock".into(),
        name,
    }
}

impl Chain {
    /// From a wait to the first holder that waits for no other lock.
    pub(super) fn of(seen: &Seen, wait: &Wait, recording: &str) -> Self {
        let mut chain = Self::default();
        let mut visited: FxHashSet<i32> = FxHashSet::default();
        let (mut at, mut covered) = (wait, wait.dur());
        for _ in 0..LINKS_MAX {
            visited.insert(at.utid);
            chain.evidence.push(format!("lock:{}", at.id));
            chain.hops.push(waited(seen, at, recording));
            let Some(holder) = &at.holder else {
                chain.caveats.push(format!(
                    "holder of {} unavailable: no thread was sampled in its code for long enough",
                    lock_name(at)
                ));
                break;
            };
            chain.is_guess |= holder.confidence == "low";
            chain.hops.push(held(seen, at, holder, recording));
            if visited.contains(&holder.utid) {
                chain.caveats.push(format!(
                    "the chain returns to {}: a deadlock, if the holders are correct",
                    sentence::thread(&holder.actor)
                ));
                break;
            }
            covered = part_of(covered, holder.held, at.dur());
            chain.link(holder, "lock_program", holder.function.clone(), covered);
            if let Some(gap) = holder.gap.and_then(|id| seen.gap(id)) {
                let silent = covered.min(common(at, gap.begin, gap.end));
                if chain.leads_on(silent) {
                    chain.link(holder, "unseen_wait", Some(gap.function.clone()), silent);
                    chain.silent(seen, gap, recording);
                    break;
                }
            }
            let Some(next) = own_wait(seen, at, holder) else {
                break;
            };
            covered = covered.min(common(at, next.begin, next.end));
            if !chain.leads_on(covered) {
                break;
            }
            at = next;
        }
        chain
    }

    fn link(
        &mut self,
        holder: &Holder,
        mechanism: &'static str,
        function: Option<String>,
        covered: Ns,
    ) {
        self.links.push(Link {
            actor: holder.actor.clone(),
            mechanism,
            function,
            covered,
        });
    }

    fn leads_on(&self, covered: Ns) -> bool {
        let first = self.links.first().map_or(0, |link| link.covered);
        covered as f64 >= LINK_SHARE * first as f64
    }

    /// Links with the nanoseconds of the wait that each accounts for, the end of the chain first,
    /// which has at least half.
    pub(super) fn shares(&self) -> Vec<(&Link, Ns)> {
        let mut after = 0;
        let mut shares = Vec::with_capacity(self.links.len());
        for link in self.links.iter().rev() {
            shares.push((link, link.covered - after));
            after = link.covered;
        }
        let (Some(first), Some(last)) = (self.links.first(), self.links.last()) else {
            return shares;
        };
        if ((first.covered - last.covered) as f64) < REST_MIN * first.covered as f64 {
            return vec![(last, first.covered)];
        }
        shares.retain(|(_, own)| *own > 0);
        shares
    }

    pub(super) fn of_gap(seen: &Seen, gap: &Gap, recording: &str) -> Self {
        let mut chain = Self::default();
        chain.silent(seen, gap, recording);
        chain
    }

    /// Adds a thread that no signal reached, and the one with the largest overlap of sampling gaps.
    fn silent(&mut self, seen: &Seen, gap: &Gap, recording: &str) {
        self.evidence.push(format!("gap:{}", gap.id));
        self.gaps.push(gap.id);
        self.hops.push(without_samples(seen, gap, recording));
        let overlap = |other: &Gap| gap.end.min(other.end) - gap.begin.max(other.begin);
        let with = seen
            .gaps
            .iter()
            .filter(|other| other.utid != gap.utid)
            .filter(|other| other.group.is_some() && other.group == gap.group);
        let Some(other) = with.max_by_key(|other| overlap(other)) else {
            return;
        };
        if overlap(other) <= 0 {
            return;
        }
        self.gaps.push(other.id);
        let mut hop = without_samples(seen, other, recording);
        hop.what = "had no samples at the same time".into();
        hop.grade = Grade::C;
        hop.evidence = format!(
            "{} of both gaps overlap; a profile does not show whether one waited for the other",
            sentence::length(overlap(other))
        );
        self.hops.push(hop);
    }
}

/// Overlap of a wait with this time, in nanoseconds.
fn common(wait: &Wait, begin: Ns, end: Ns) -> Ns {
    (wait.end.min(end) - wait.begin.max(begin)).max(0)
}

/// `of` × `part` ÷ `whole`.
fn part_of(of: Ns, part: Ns, whole: Ns) -> Ns {
    let product = i128::from(of) * i128::from(part.clamp(0, whole));
    (product / i128::from(whole.max(1))) as Ns
}

/// The holder's own longest wait during the wait.
fn own_wait<'s>(seen: &'s Seen, wait: &Wait, holder: &Holder) -> Option<&'s Wait> {
    let own = seen
        .waits
        .iter()
        .filter(|other| other.utid == holder.utid && other.lock != wait.lock);
    own.max_by_key(|other| common(wait, other.begin, other.end))
}

fn hop(actor: &Actor, what: &str, mechanism: &str, (begin_ns, end_ns): (i64, i64)) -> Hop {
    Hop {
        actor: actor.clone(),
        what: what.into(),
        mechanism: mechanism.into(),
        activity: None,
        object: None,
        stack: Vec::new(),
        program: Vec::new(),
        begin_ns,
        end_ns,
        grade: Grade::B,
        evidence: String::new(),
        shown_by: None,
    }
}

/// A stack from a function on: the frames further in belong to the runtime.
fn from(stack: &[String], function: Option<&String>) -> Vec<String> {
    let first = stack.iter().position(|frame| Some(frame) == function);
    stack[first.unwrap_or(0)..].to_vec()
}

fn waited(seen: &Seen, wait: &Wait, recording: &str) -> Hop {
    let (grade, evidence) = if wait.is_reported {
        (Grade::A, "reported by the runtime".to_owned())
    } else {
        (
            Grade::B,
            "its samples are in code that acquires the lock".to_owned(),
        )
    };
    Hop {
        object: Some(lock_thing(wait)),
        stack: from(seen.stack(wait.callsite), Some(&wait.function)),
        grade,
        evidence,
        shown_by: Some(format!("whyslow locks log {recording} -w lock:{}", wait.id)),
        ..hop(
            &wait.actor,
            "waited",
            "lock_program",
            (wait.begin, wait.end),
        )
    }
}

fn held(seen: &Seen, wait: &Wait, holder: &Holder, recording: &str) -> Hop {
    let held = sentence::length(holder.held);
    let (grade, evidence) = match holder.confidence.as_str() {
        "high" => (
            Grade::B,
            format!(
                "the runtime reported that it acquired this lock, and its samples agree for {held}"
            ),
        ),
        "medium" => (
            Grade::B,
            format!("for {held} only its samples are in code that holds the lock"),
        ),
        _ => (
            Grade::C,
            format!(
                "low confidence: for {held} it was in code of the same class, or was the last known holder"
            ),
        ),
    };
    Hop {
        activity: holder.function.as_ref().map(|function| Activity {
            call: function.clone(),
            path: None,
            begin_ns: wait.begin,
            end_ns: Some(wait.end),
            id: None,
        }),
        object: Some(lock_thing(wait)),
        stack: from(seen.stack(holder.callsite), holder.function.as_ref()),
        grade,
        evidence,
        shown_by: Some(format!(
            "whyslow threads dump {recording} --at {}",
            super::time_argument(wait.begin + wait.dur() / 2)
        )),
        ..hop(
            &holder.actor,
            "held the lock",
            "lock_program",
            (wait.begin, wait.end),
        )
    }
}

fn without_samples(seen: &Seen, gap: &Gap, recording: &str) -> Hop {
    let evidence = if gap.is_proven() {
        "no signal reached it, and the recorder saw it in an uninterruptible wait"
    } else if gap.shown.is_some() {
        "no signal reached it, but the recorder did not see it in an uninterruptible wait"
    } else if gap.is_fault {
        "no signal reached it, and then it accessed memory: probably a page fault with I/O"
    } else {
        "no signal reached it, and its next sample is in this call"
    };
    Hop {
        object: Some(Thing {
            kind: "function".into(),
            name: gap.place(),
        }),
        stack: seen.stack(gap.callsite).to_vec(),
        grade: gap.grade(),
        evidence: evidence.into(),
        shown_by: Some(format!(
            "whyslow threads gaps {recording} -w {}",
            sentence::window(gap.begin, gap.end)
        )),
        ..hop(
            &gap.actor,
            "had no samples",
            "unseen_wait",
            (gap.begin, gap.end),
        )
    }
}
