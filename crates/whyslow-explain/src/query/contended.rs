//! Findings of locks that take a large share of the time of several threads.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::{CallsiteRow, FrameRow, StackSampleRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::Explainer;
use crate::attempts::POLLED;
use crate::contention::{self, Contended, FILE_LOCK, Wait};
use crate::finding::{Subject, findings};
use crate::report::{Actor, Contention, Finding, Followed, Group};
use crate::sentence;
use crate::slow::process_names;
use crate::window_slice::columns::rows;

/// Maximum number of locks with a finding.
const LOCKS: usize = 3;
/// Locks that are examined: of some, no holder is known.
const EXAMINED: usize = 8;
/// Functions of the program that are reported.
const FUNCTIONS: usize = 8;
/// Minimum share of the examined waits for the holder to be named.
const HELD_MIN: f64 = 0.5;
/// Calls in which a thread waits for events, and holds nothing back by its own work.
const EVENT_WAITS: [&str; 8] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "accept4",
];
/// Functions in which threads wait for work or an event, not for a lock.
const EVENTS: [&str; 7] = [
    "cond_wait",
    "cond_timedwait",
    "cond_clockwait",
    "Condvar",
    "condition_variable",
    "sem_wait",
    "Semaphore",
];

impl Explainer<'_> {
    /// A finding for each lock that blocks threads for much of their time and whose holder is
    /// known.
    pub(super) fn contended(&self, utids: &[i32]) -> Result<Vec<Finding>, AnalysisError> {
        let locks = contention::locks(self.tables, self.query.window, utids)?;
        let mut found = Vec::new();
        for lock in locks.iter().take(EXAMINED) {
            found.extend(self.of_lock(lock)?);
            if found.len() >= LOCKS {
                break;
            }
        }
        Ok(found)
    }

    fn of_lock(&self, lock: &Contended) -> Result<Option<Finding>, AnalysisError> {
        let subjects = lock.longest.iter();
        let subjects: Vec<Subject> = subjects.map(|wait| self.of_wait(lock, wait)).collect();
        let walked = findings(self.tables, &subjects)?;
        let Some((holder, share)) = holder_of(lock, &walked) else {
            return Ok(None);
        };
        let Some(place) = walked
            .iter()
            .position(|finding| held(lock, finding).is_some_and(|(actor, _)| *actor == holder))
        else {
            return Ok(None);
        };
        let callsite = callsite(self.tables, &lock.longest[place])?;
        let is_event = |function: &String| EVENTS.iter().any(|event| function.contains(event));
        if share < HELD_MIN || callsite.iter().any(is_event) {
            return Ok(None);
        }
        let count = walked.len() as u64;
        let others = others(&walked, place, &holder);
        let Some(mut finding) = walked.into_iter().nth(place) else {
            return Ok(None);
        };
        finding.group = Some(Group {
            operation: named(lock),
            count: lock.waits,
            dur_ns_total: lock.waited,
            dur_ns_max: lock.longest[0].dur,
            walked: count,
            threads: usize::try_from(lock.threads).unwrap_or(usize::MAX),
            others,
            ..Group::default()
        });
        self.headline(lock, &mut finding)?;
        finding.contention = Some(Contention {
            kind: lock.kind.clone(),
            lock: lock.lock.clone(),
            holder,
            holder_share: share,
            threads: lock.threads,
            waits: lock.waits,
            waited_ns: lock.waited,
            wall_ns: lock.wall,
            share: lock.share,
            end_ns: lock.end,
            callsite,
        });
        Ok(Some(finding))
    }

    fn of_wait(&self, lock: &Contended, wait: &Wait) -> Subject {
        let id = match lock.kind.as_str() {
            _ if wait.id == POLLED => None,
            "futex" | FILE_LOCK => Some(format!("op:{}", wait.id)),
            _ => Some(format!("lock:{}", wait.id)),
        };
        let window = match &id {
            Some(id) => id.clone(),
            None => sentence::window(wait.begin, wait.end()),
        };
        let reproduce = self.command(&format!("-w {window}"));
        Subject {
            utid: wait.utid,
            begin: wait.begin,
            end: wait.end(),
            kind: "lock",
            id,
            what: format!("a wait for {}", named(lock)),
            cut: None,
            only_waits: false,
            baseline: None,
            reproduce,
            recording: self.query.recording.clone(),
        }
    }

    /// Puts the sum of all waits before the cause of the longest one.
    fn headline(&self, lock: &Contended, finding: &mut Finding) -> Result<(), AnalysisError> {
        let comms = process_names(self.tables)?;
        let comm = lock.upid.and_then(|upid| comms.get(&i64::from(upid)));
        let of = comm.map_or_else(String::new, |comm| {
            let pid = finding.target.actor.pid;
            let pid = pid.map_or_else(String::new, |pid| format!("[{pid}]"));
            format!(" of {comm}{pid}")
        });
        let threads = match lock.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        let head = format!(
            "{threads}{of} waited {} of the time for {} ({} in {} waits of up to {})",
            sentence::percent(lock.share),
            named(lock),
            sentence::length(lock.waited),
            lock.waits,
            sentence::length(lock.longest[0].dur),
        );
        let cause = finding.verdict.strip_prefix(&finding.remote.head);
        let cause = cause.map_or("", |cause| cause.trim_start_matches(": "));
        let length = sentence::length(finding.target.end_ns - finding.target.begin_ns);
        finding.verdict = format!("{head}: in one of {length}, {cause}");
        finding.remote.summary.clone_from(&finding.verdict);
        finding.remote.head = head;
        Ok(())
    }
}

/// `lock 7f00 (futex)`, `the lock of file /run/app.lock`.
fn named(lock: &Contended) -> String {
    match lock.kind.as_str() {
        "futex" => format!("lock {} (futex)", lock.lock),
        FILE_LOCK => format!("the lock of file {}", lock.lock),
        kind => format!("kernel lock {} ({kind})", lock.lock),
    }
}

/// The thread that held the lock for most of a wait, and for how long; `None` if that is not known.
fn held<'f>(lock: &Contended, finding: &'f Finding) -> Option<(&'f Actor, Ns)> {
    let part = &finding.parts[finding.culprit?];
    // The thread that wakes a waiter for a file lock has released it.
    let is_lock = part.mechanism.starts_with("lock_")
        || lock.kind == FILE_LOCK && matches!(part.mechanism.as_str(), "kernel_wait" | "woken_by");
    // A thread that waits for events meanwhile has no work: the others wait for what it will hand
    // over, as the threads of a pool do for the thread that fills their queue.
    let is_idle = part
        .activity
        .as_ref()
        .is_some_and(|activity| EVENT_WAITS.contains(&activity.call.as_str()));
    let holder = finding.chain.get(1).map(|hop| &hop.actor);
    let holder = holder.filter(|actor| is_lock && !is_idle && actor.tid.is_some())?;
    Some((holder, finding.saved_at_most_ns))
}

/// The thread that held the lock for most of the time of these waits, and its share.
fn holder_of(lock: &Contended, walked: &[Finding]) -> Option<(Actor, f64)> {
    let mut sums: FxHashMap<&Actor, Ns> = FxHashMap::default();
    for (actor, ns) in walked.iter().filter_map(|one| held(lock, one)) {
        *sums.entry(actor).or_default() += ns;
    }
    let (actor, ns) = sums.into_iter().max_by_key(|(actor, ns)| (*ns, *actor))?;
    let all = walked.iter();
    let all: Ns = all
        .map(|finding| finding.target.end_ns - finding.target.begin_ns)
        .sum();
    Some((actor.clone(), ns as f64 / all.max(1) as f64))
}

/// Functions of the program in which a thread waited, innermost first.
fn callsite(tables: &dyn Tables, wait: &Wait) -> Result<Vec<String>, AnalysisError> {
    let mut callsite = wait.callsite;
    let window = Some(Window::new(wait.begin, wait.end()));
    let columns = (&["ts", "ts_end", "utid", "callsite_id"][..], &[][..]);
    rows(
        tables,
        StackSampleRow::TABLE,
        columns,
        window,
        |cells, row| {
            if cells.small(2, row) == Some(wait.utid) {
                callsite = cells.int(3, row).or(callsite);
            }
        },
    )?;
    let Some(callsite) = callsite else {
        return Ok(Vec::new());
    };
    let mut parents: FxHashMap<i64, (Option<i64>, i64)> = FxHashMap::default();
    let columns = (&["id", "parent_id", "frame_id"][..], &[][..]);
    rows(tables, CallsiteRow::TABLE, columns, None, |cells, row| {
        let (id, frame) = (cells.ints[0].at(row), cells.ints[2].at(row));
        if id <= callsite {
            parents.insert(id, (cells.int(1, row), frame));
        }
    })?;
    let (mut at, mut frames) = (Some(callsite), Vec::new());
    // Callers have smaller ids, so this ends.
    while let Some((parent, frame)) = at.and_then(|at| parents.get(&at)) {
        frames.push(*frame);
        at = parent.filter(|parent| Some(*parent) < at);
    }
    let wanted: FxHashSet<i64> = frames.iter().copied().collect();
    let mut names: FxHashMap<i64, String> = FxHashMap::default();
    let columns = (&["id"][..], &["function", "kind"][..]);
    rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
        let (id, function) = (cells.ints[0].at(row), cells.text(0, row));
        if wanted.contains(&id) && cells.text(1, row) != "kernel" && !function.is_empty() {
            names.insert(id, function.to_owned());
        }
    })?;
    let functions = frames.iter().filter_map(|frame| names.get(frame).cloned());
    Ok(functions.take(FUNCTIONS).collect())
}

/// The waits of other threads than the one at `place`, for the drawing: one of each.
fn others(walked: &[Finding], place: usize, holder: &Actor) -> Vec<Followed> {
    let mut threads = vec![&walked[place].target.actor];
    let mut others = Vec::new();
    for finding in walked {
        let target = &finding.target;
        let Some(id) = target
            .id
            .clone()
            .filter(|_| !threads.contains(&&target.actor))
        else {
            continue;
        };
        threads.push(&target.actor);
        let culprit = finding.culprit.map(|place| &finding.parts[place].culprit);
        others.push(Followed {
            actor: target.actor.clone(),
            what: target.what.clone(),
            id,
            begin_ns: target.begin_ns,
            end_ns: target.end_ns,
            is_same: culprit == Some(holder),
        });
    }
    others
}
