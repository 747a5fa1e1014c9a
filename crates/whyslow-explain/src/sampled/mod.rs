//! Findings from profiles: waits for the program's own locks, the lock holders and what they did,
//! and threads that had no samples at the same time.
//!
//! Samples show what happened, rarely why. A holder confirmed by the runtime's own events, and a
//! thread that no signal reached, get grade B; everything else only overlaps (C). What a thread
//! waited for in the kernel is never inferred from samples.

mod below;
mod calls;
mod chain;
mod load;
mod program;
mod silent;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::ThreadStateRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::page::Page;
use crate::report::{
    Activity, Actor, ActorKind, Confidence, Finding, Grade, Group, Missing, Part, Target, Thing,
};
use crate::sentence;
use crate::window_slice::columns::rows;
use chain::Chain;
use load::{Gap, Seen, Wait};

pub(crate) use load::{Code, code};
pub(crate) use program::{add as add_programs, of_program};

/// Default minimum duration of a finding.
const LONG: Ns = 100_000_000;
/// Groups of each kind that get a finding.
const GROUPS: usize = 8;
/// Minimum share of the wait for a holder to be named with medium confidence.
const HELD_MIN: f64 = 0.5;

/// The query of a profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileQuery<'q> {
    pub(crate) window: Option<Window>,
    /// Only these threads.
    pub(crate) utids: Vec<i32>,
    /// Only time below these calls.
    pub(crate) calls: Vec<String>,
    /// Minimum duration.
    pub(crate) min: Option<Ns>,
    /// Name of the recording in commands.
    pub(crate) recording: &'q str,
}

/// Whether the recording has data of profiles.
pub(crate) fn is_there(tables: &dyn Tables) -> bool {
    ["lock_wait", "sample_gap", "stack_sample"]
        .iter()
        .any(|name| has(tables, name))
}

/// Whether the recording has kernel events of what threads did.
pub(crate) fn is_kernel_there(tables: &dyn Tables) -> bool {
    ["thread_state", "syscall"]
        .iter()
        .any(|name| has(tables, name))
}

/// Whether kernel events show what a thread did in a window.
pub(crate) fn has_states(
    tables: &dyn Tables,
    utid: i32,
    window: Window,
) -> Result<bool, AnalysisError> {
    let columns = (&["ts", "ts_end", "utid"][..], &[][..]);
    let mut is_there = false;
    rows(
        tables,
        ThreadStateRow::TABLE,
        columns,
        Some(window),
        |cells, row| {
            is_there |= cells.small(2, row) == Some(utid);
        },
    )?;
    Ok(is_there)
}

fn has(tables: &dyn Tables, name: &str) -> bool {
    let table = tables.info().tables.get(name);
    table.is_some_and(|table| table.rows > 0)
}

/// Findings of the longest waits, one for each lock, and of the longest sampling gaps, one for each
/// call.
pub(crate) fn findings(
    tables: &dyn Tables,
    query: &ProfileQuery<'_>,
) -> Result<Vec<(i32, Finding)>, AnalysisError> {
    if !query.calls.is_empty() {
        return below::findings(tables, query);
    }
    let seen = Seen::read(tables, query.window)?;
    let builder = FindingBuilder {
        seen: &seen,
        recording: query.recording,
        has_calls: has(tables, "syscall"),
    };
    let min = query.min.unwrap_or(LONG);
    let is_of = |utid| query.utids.is_empty() || query.utids.contains(&utid);
    let mut by_lock: BTreeMap<(&str, &str), Vec<&Wait>> = BTreeMap::new();
    for wait in &seen.waits {
        if wait.dur() >= min && is_of(wait.utid) {
            // Garbage collectors move objects, so one lock has many addresses.
            let class = wait
                .function
                .rsplit_once('.')
                .map_or("", |(class, _)| class);
            by_lock.entry((&wait.object, class)).or_default().push(wait);
        }
    }
    let mut findings = Vec::new();
    let mut known: FxHashSet<i64> = FxHashSet::default();
    for waits in longest_first(by_lock.into_values().collect(), Wait::dur) {
        // A wait with a known holder is more useful than a slightly longer one.
        let best = waits.iter().max_by_key(|wait| worth(wait));
        let Some(best) = best else { continue };
        let (finding, gaps) = builder.lock(best, &waits);
        known.extend(gaps);
        findings.push((best.utid, finding));
    }
    // Recorded system calls cover these gaps, with the cause of the wait.
    if !builder.has_calls {
        let mut by_call: BTreeMap<(&str, bool), Vec<&Gap>> = BTreeMap::new();
        for gap in &seen.gaps {
            if gap.dur() >= min && is_of(gap.utid) {
                by_call
                    .entry((&gap.function, gap.is_fault))
                    .or_default()
                    .push(gap);
            }
        }
        for gaps in longest_first(by_call.into_values().collect(), Gap::dur) {
            let longest = gaps.iter().max_by_key(|gap| gap.dur());
            // A gap that is already part of a chain gets no finding of its own.
            if let Some(gap) = longest.filter(|gap| !known.contains(&gap.id)) {
                findings.push((gap.utid, builder.gap(gap, &gaps)));
            }
        }
    }
    // Kernel events show which call it was, and what it waited for.
    if !is_kernel_there(tables) && has(tables, "stack_sample") {
        findings.extend(below::findings(tables, query)?);
    }
    Ok(findings)
}

/// The finding of one lock wait or sampling gap.
pub(crate) fn finding_of(
    tables: &dyn Tables,
    (table, id): (&str, i64),
    window: Window,
    recording: &str,
) -> Result<Option<(i32, Finding)>, AnalysisError> {
    let seen = Seen::read(tables, Some(window))?;
    let builder = FindingBuilder {
        seen: &seen,
        recording,
        has_calls: has(tables, "syscall"),
    };
    Ok(match table {
        "lock_wait" => {
            let wait = seen.waits.iter().find(|wait| wait.id == id);
            wait.map(|wait| (wait.utid, builder.lock(wait, &[wait]).0))
        }
        _ => seen.gap(id).map(|gap| (gap.utid, builder.gap(gap, &[gap]))),
    })
}

/// The groups with the longest total time.
fn longest_first<T>(mut groups: Vec<Vec<&T>>, dur: impl Fn(&T) -> Ns) -> Vec<Vec<&T>> {
    let total = |of: &Vec<&T>| of.iter().map(|one| dur(one)).sum::<Ns>();
    groups.index_sort_by_key(|of| std::cmp::Reverse(total(of)));
    groups.truncate(GROUPS);
    groups
}

/// How useful the finding of a wait is, among waits for one lock.
fn worth(wait: &Wait) -> (Ns, Ns) {
    let held = wait
        .holder
        .as_ref()
        .filter(|holder| holder.confidence != "low");
    (held.map_or(0, |holder| holder.held), wait.dur())
}

struct FindingBuilder<'s> {
    seen: &'s Seen,
    recording: &'s str,
    has_calls: bool,
}

impl FindingBuilder<'_> {
    fn lock(&self, wait: &Wait, group: &[&Wait]) -> (Finding, Vec<i64>) {
        let chain = Chain::of(self.seen, wait, self.recording);
        let target = Target {
            kind: "lock".into(),
            id: Some(format!("lock:{}", wait.id)),
            what: format!("wait for {} in {}", chain::lock_name(wait), wait.function),
            actor: wait.actor.clone(),
            begin_ns: wait.begin,
            end_ns: wait.end,
            cut: None,
        };
        let length = wait.dur().max(1);
        let is_sure = wait
            .holder
            .as_ref()
            .is_some_and(|holder| holder.confidence != "low" && !chain.is_guess);
        let shares = chain.shares().into_iter();
        let mut parts: Vec<Part> = shares
            .map(|(link, own)| Part {
                mechanism: "lock_program".into(),
                root: link.mechanism.into(),
                culprit: link.actor.clone(),
                activity: link.function.as_ref().map(|function| Activity {
                    call: function.clone(),
                    path: None,
                    begin_ns: wait.begin,
                    end_ns: Some(wait.end),
                    id: None,
                }),
                object: Some(chain::lock_thing(wait)),
                client: None,
                dur_ns: own,
                share: own as f64 / length as f64,
                grade: if is_sure { Grade::B } else { Grade::C },
                pieces: 1,
                evidence: chain.evidence.clone(),
                shown_by: Some(format!(
                    "whyslow threads dump {} --at {}",
                    self.recording,
                    time_argument(wait.begin + wait.dur() / 2)
                )),
            })
            .collect();
        let rest = length - parts.iter().map(|part| part.dur_ns).sum::<Ns>();
        parts.extend(unknown(rest, length));
        let confidence = match parts.first() {
            Some(part) if part.mechanism != "lock_program" => Confidence::None,
            Some(part) if part.grade == Grade::B && part.share >= HELD_MIN => Confidence::Medium,
            Some(_) => Confidence::Low,
            None => Confidence::None,
        };
        let operation = format!("waits for {}", chain::lock_name(wait));
        let of_group = of_group(operation, group, Wait::dur);
        let mut caveats = chain.caveats.clone();
        if !wait.is_reported {
            caveats.push(
                "exact start and end unavailable: inferred from samples (record lock events with \
                 `async-profiler --lock 1ms`)"
                    .into(),
            );
        }
        let gaps = chain.gaps.clone();
        let finding = self.finish(target, of_group, (parts, confidence), chain, caveats);
        (finding, gaps)
    }

    fn gap(&self, gap: &Gap, group: &[&Gap]) -> Finding {
        let chain = Chain::of_gap(self.seen, gap, self.recording);
        let call = &gap.function;
        let target = Target {
            kind: "gap".into(),
            id: Some(format!("gap:{}", gap.id)),
            what: format!("sampling gap that ended in {call}"),
            actor: gap.actor.clone(),
            begin_ns: gap.begin,
            end_ns: gap.end,
            cut: None,
        };
        let length = gap.dur().max(1);
        let parts = vec![Part {
            mechanism: "unseen_wait".into(),
            root: "unseen_wait".into(),
            culprit: Actor {
                kind: ActorKind::Own,
                ..gap.actor.clone()
            },
            activity: None,
            object: Some(Thing {
                kind: "function".into(),
                name: gap.place(),
            }),
            client: None,
            dur_ns: length,
            share: 1.0,
            grade: gap.grade(),
            pieces: 1,
            evidence: vec![format!("gap:{}", gap.id)],
            shown_by: Some(format!(
                "whyslow threads gaps {} -w {}",
                self.recording,
                sentence::window(gap.begin, gap.end)
            )),
        }];
        let confidence = match gap.grade() {
            Grade::A => Confidence::High,
            Grade::B => Confidence::Medium,
            Grade::C => Confidence::Low,
        };
        let operation = format!("sampling gaps that ended in {call}");
        let of_group = of_group(operation, group, Gap::dur);
        self.finish(target, of_group, (parts, confidence), chain, Vec::new())
    }

    fn finish(
        &self,
        target: Target,
        group: Option<Group>,
        (parts, confidence): (Vec<Part>, Confidence),
        chain: Chain,
        caveats: Vec<String>,
    ) -> Finding {
        let named = Some(&parts[0]).filter(|_| confidence != Confidence::None);
        let cause = named.map(|part| (part, part.dur_ns, part.share, part.grade));
        let verdict = sentence::verdict(&target, None, cause, &chain.hops, false);
        let is_unknown = |part: &&Part| part.mechanism == "unknown";
        let reproduce = match &target.id {
            Some(id) => format!("whyslow explain {} -w {id}", self.recording),
            None => format!("whyslow explain {}", self.recording),
        };
        Finding {
            across: Vec::new(),
            did: Vec::new(),
            behind: None,
            is_trigger: false,
            page: Page::default(),
            remote: crate::report::Remote::default(),
            verdict,
            confidence,
            score: named.map_or(0.0, |part| match part.grade {
                Grade::C => 0.3 * part.share,
                Grade::B => 0.8 * part.share,
                Grade::A => part.share,
            }),
            culprit: named.map(|_| 0),
            suggestions: named.map_or_else(Vec::new, |part| self.advice(part)),
            saved_at_most_ns: named.map_or(0, |part| part.dur_ns),
            unexplained_ns: parts
                .iter()
                .filter(is_unknown)
                .map(|part| part.dur_ns)
                .sum(),
            group,
            contention: None,
            versus: None,
            baseline: None,
            chain: chain.hops,
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: self.missing(),
            caveats,
            reproduce,
            parts,
            target,
        }
    }

    /// Advice, without what was already done.
    fn advice(&self, part: &Part) -> Vec<String> {
        let is_seen = self.seen.gaps.iter().any(|gap| gap.shown.is_some());
        let mut advice = crate::advice::on(&part.mechanism, &part.root);
        advice.retain(|line| !is_seen || !line.contains("--stacks wall:"));
        advice
    }

    fn missing(&self) -> Vec<Missing> {
        if self.has_calls {
            return Vec::new();
        }
        vec![Missing {
            events: "kernel events".into(),
            decides: "what a thread waited for in a sampling gap: a profile does not distinguish a disk from a \
                      kernel lock"
                .into(),
            record_with: "whyslow record".into(),
        }]
    }
}

fn of_group<T>(operation: String, group: &[&T], dur: impl Fn(&T) -> Ns) -> Option<Group> {
    let longest = group.iter().map(|one| dur(one)).max()?;
    Some(Group {
        operation,
        count: group.len() as u64,
        dur_ns_total: group.iter().map(|one| dur(one)).sum(),
        dur_ns_max: longest,
        walked: 1,
        ..Group::default()
    })
}

/// The unexplained rest of the time.
fn unknown(dur: Ns, length: Ns) -> Option<Part> {
    (dur > 0).then(|| Part {
        mechanism: "unknown".into(),
        root: "unknown".into(),
        culprit: Actor {
            kind: ActorKind::Unknown,
            name: String::new(),
            pid: None,
            tid: None,
            host: None,
        },
        activity: None,
        object: None,
        client: None,
        dur_ns: dur,
        share: dur as f64 / length as f64,
        grade: Grade::C,
        pieces: 1,
        evidence: Vec::new(),
        shown_by: None,
    })
}

/// A time in the form that commands accept.
fn time_argument(ts: Ns) -> String {
    format!("{ts}ns")
}
